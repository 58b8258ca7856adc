"""What a controller stands on: environment, client, informers, work queue, controller, manager, event recorder."""
