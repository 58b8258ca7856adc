"""``kubemini serve``: a cluster behind HTTP until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import logging
import secrets
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from kubemini.cli.options import configuration, duration, gates
from kubemini.cli.quick import without_authorities, without_collections
from kubemini.machinery.collecting import collect_rarely
from kubemini.machinery.errors import ConfigError
from kubemini.server.http.minting import Minting, tls_hosts


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the command line said."""

    host: str = "127.0.0.1"
    port: int = 0
    fleet: str = "none"
    kubeconfig: Path = Path("kubemini.kubeconfig")
    pods: str = "forever"
    seed: int | None = None
    controllers: str = "*"
    kubernetes_version: str = "1.36"
    feature_gates: str = ""
    kueue_config: Path | None = None
    lws_config: Path | None = None
    tls: bool = True
    dns: int | None = None
    metrics_server: bool = False
    event_ttl: str = "1h"
    log_level: str = "warning"


def run(options: ServeOptions) -> None:
    """Serve until interrupted. Raise `ConfigError` for anything that cannot be had."""
    levels = logging.getLevelNamesMapping()
    if options.log_level.upper() not in levels:
        raise ConfigError(f"--log-level {options.log_level}: choose debug, info, warning or error")
    logging.basicConfig(level=levels[options.log_level.upper()], format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    # Trees are acyclic and long-lived: full collections only cost time
    collect_rarely(100_000, 50, 100)
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(options))
    else:
        uvloop.run(_serve(options))


async def _serve(options: ServeOptions) -> None:
    minting = Minting(tls_hosts(options.host)) if options.tls else None
    with without_authorities(), without_collections():
        from kubemini.server.http.serving import LOOPBACK, check_kubeconfig, write_kubeconfig
        from kubemini.serving import ServedCluster

    if options.host not in LOOPBACK and not options.tls:
        raise ConfigError(f"--host {options.host} without --tls would serve an open cluster to the network; keep --tls, or listen on 127.0.0.1")
    check_kubeconfig(options.kubeconfig)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    cluster = ServedCluster(
        host=options.host,
        port=options.port,
        tls=options.tls,
        minted=minting.minted if minting is not None else None,
        token=secrets.token_urlsafe(24) if options.tls else "",
        dns=options.dns,
        metrics_server=options.metrics_server,
        fleet=options.fleet,
        controllers=options.controllers,
        pods=options.pods,
        seed=options.seed,
        feature_gates=gates(options.feature_gates),
        kueue=configuration(options.kueue_config, "--kueue-config", "config.kueue.x-k8s.io"),
        lws=configuration(options.lws_config, "--lws-config", "config.lws.x-k8s.io"),
        kubernetes_version=options.kubernetes_version,
        event_ttl=duration(options.event_ttl, "--event-ttl"),
    )
    try:
        with without_collections():
            await cluster.start()
        write_kubeconfig(options.kubeconfig, cluster.kubeconfig())
        _say(f"serving Kubernetes {options.kubernetes_version} on {cluster.listener.url}")
        _say(f"  export KUBECONFIG={options.kubeconfig.absolute()}")
        if cluster.dns is not None:
            _say(f"  dig @{cluster.dns.host} -p {cluster.dns.port} kubernetes.default.svc.cluster.local")
        gc.freeze()
        await stopped.wait()
    finally:
        await cluster.stop()


def _say(text: str) -> None:
    print(text, flush=True)
