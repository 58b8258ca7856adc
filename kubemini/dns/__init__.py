"""Names of Services and pods: what the cluster's DNS would answer, in process and as a real DNS server."""
