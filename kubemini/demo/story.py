"""The manifests and the plot.

Two racks of H100 nodes, one ClusterQueue with quota for five of them. A fine-tuning job of another team holds part of it, so the training
run waits in the queue and holds nothing. When the other one is done the run is admitted all at once, the leader starts before any
worker, a worker's node process dies, the whole gang restarts, and the run completes.
"""

from __future__ import annotations

from kubemini.demo.timeline import Timeline
from kubemini.sim.cluster import SimCluster

FLEET = "h100-2racks"

QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: gpu-cq}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100
      resources: [{name: nvidia.com/gpu, nominalQuota: 40}]
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team-lq, namespace: team-a}
spec: {clusterQueue: gpu-cq}
"""

OTHER = """
apiVersion: batch/v1
kind: Job
metadata:
  name: finetune
  namespace: team-a
  labels: {kueue.x-k8s.io/queue-name: team-lq}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {annotations: {kubemini.dev/run-for: 45s}}
    spec:
      restartPolicy: Never
      containers:
      - name: tuner
        image: my-tuner:1.0
        resources: {limits: {nvidia.com/gpu: 8}}
"""

TRAIN = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: train
  namespace: team-a
  labels: {kueue.x-k8s.io/queue-name: team-lq}
spec:
  network: {enableDNSHostnames: true}
  coordinator: {replicatedJob: leader, jobIndex: 0, podIndex: 0}
  startupPolicy: {startupPolicyOrder: InOrder}
  failurePolicy: {maxRestarts: 3, restartStrategy: BlockingRecreate}
  successPolicy: {operator: All, targetReplicatedJobs: [leader]}
  replicatedJobs:
  - name: leader
    replicas: 1
    template:
      spec:
        parallelism: 1
        completions: 1
        backoffLimit: 0
        template:
          metadata: {annotations: {kubemini.dev/ready-after: 3s, kubemini.dev/run-for: 90s}}
          spec:
            restartPolicy: Never
            containers:
            - name: trainer
              image: my-trainer:1.0
              resources: {limits: {nvidia.com/gpu: 8}}
  - name: worker
    replicas: 4
    template:
      spec:
        parallelism: 1
        completions: 1
        backoffLimit: 0
        template:
          metadata: {annotations: {kubemini.dev/ready-after: 2s, kubemini.dev/run-for: 95s}}
          spec:
            restartPolicy: Never
            containers:
            - name: trainer
              image: my-trainer:1.0
              resources: {limits: {nvidia.com/gpu: 8}}
"""


async def play(cluster: SimCluster) -> Timeline:
    """Run the plot on a fresh cluster and return what was seen. Raise `TimeoutError` where the story does not go as told."""
    timeline = Timeline(cluster)
    await cluster.settle(30)
    timeline.begin()
    timeline.say("an administrator makes a flavor, a ClusterQueue with 40 GPUs and a LocalQueue for team-a")
    await cluster.apply(QUEUES)
    await cluster.env.sleep(1)
    timeline.say("team-a submits job/finetune: 2 pods x 8 GPUs")
    await cluster.apply(OTHER)
    await cluster.wait("job/finetune", "jsonpath={.status.ready}=2", namespace="team-a", timeout=60)
    await cluster.env.sleep(5)
    timeline.say("team-a submits jobset/train: a leader and 4 workers, 5 x 8 GPUs, started in order")
    await cluster.apply(TRAIN)
    await cluster.wait("jobset/train", "condition=Suspended", namespace="team-a", timeout=60)
    await cluster.wait("jobset/train", "condition=Suspended=False", namespace="team-a", timeout=300)
    await cluster.wait("jobset/train", 'jsonpath={.status.replicatedJobsStatus[?(@.name=="worker")].ready}=4', namespace="team-a", timeout=120)
    await cluster.env.sleep(20)
    victim = next(pod for pod in await cluster.list("pod", namespace="team-a") if pod["metadata"]["name"].startswith("train-worker-2-"))
    timeline.say(f"worker 2 dies: pod/{victim['metadata']['name']} exits with code 139")
    await cluster.fail_pod("team-a", victim["metadata"]["name"], exit_code=139)
    await cluster.wait("jobset/train", "jsonpath={.status.restarts}=1", namespace="team-a", timeout=120)
    await cluster.wait("jobset/train", "condition=Completed", namespace="team-a", timeout=600)
    timeline.say("jobset/train is Completed")
    await cluster.settle(60)
    timeline.end()
    return timeline
