"""The command line's shape; each command's work is in the module of its name, imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import kubemini

app = typer.Typer(
    name="kubemini",
    help="A whole Kubernetes control plane for multi-host ML, in one Python process, without a cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kubemini {kubemini.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print kubemini's version and exit.")] = False,
) -> None:
    """A whole Kubernetes control plane for multi-host ML, in one Python process, without a cluster."""


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)] = 6443,
    fleet: Annotated[str, typer.Option(help="Nodes to start with: a preset, a YAML file, or none.")] = "none",
    kubeconfig: Annotated[Path | None, typer.Option(help="Where to write the kubeconfig (mode 0600). Default: ./kubemini.kubeconfig.")] = None,
    pods: Annotated[
        str, typer.Option(help="What pods do unless annotated: forever, or programs (run and exit as their container commands suggest).")
    ] = "forever",
    seed: Annotated[int | None, typer.Option(help="Seed of names, ids and chance; drawn when not given.")] = None,
    controllers: Annotated[str, typer.Option(help="Controllers to run: names separated by commas, '*' for all, '-NAME' to leave one out.")] = "*",
    kubernetes_version: Annotated[str, typer.Option(help="Kubernetes version to emulate.")] = "1.36",
    feature_gates: Annotated[
        list[str] | None,
        typer.Option(help="Feature gates: NAME=true,NAME=false (Kubernetes, JobSet, LWS and Kueue alike). May be given more than once."),
    ] = None,
    kueue_config: Annotated[Path | None, typer.Option(help="Kueue's Configuration as YAML.")] = None,
    lws_config: Annotated[Path | None, typer.Option(help="LeaderWorkerSet's Configuration as YAML, say to gang-schedule with Volcano.")] = None,
    tls: Annotated[bool, typer.Option(help="Serve HTTPS with a fresh certificate and a token.")] = True,
    dns: Annotated[int | None, typer.Option(min=0, max=65535, help="Also answer DNS for Services and pods on this UDP and TCP port.")] = None,
    metrics_server: Annotated[bool, typer.Option(help="Serve metrics.k8s.io, for `kubectl top`.")] = False,
    event_ttl: Annotated[str, typer.Option(help="How long events are kept, such as 1h or 30m.")] = "1h",
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
) -> None:
    """Serve a fake cluster over Kubernetes' REST API until interrupted."""
    from kubemini.cli.serve import ServeOptions, run

    run(
        ServeOptions(
            host=host,
            port=port,
            fleet=fleet,
            kubeconfig=kubeconfig or Path("kubemini.kubeconfig"),
            pods=pods,
            seed=seed,
            controllers=controllers,
            kubernetes_version=kubernetes_version,
            feature_gates=",".join(feature_gates or ()),
            kueue_config=kueue_config,
            lws_config=lws_config,
            tls=tls,
            dns=dns,
            metrics_server=metrics_server,
            event_ttl=event_ttl,
            log_level=log_level,
        )
    )


@app.command()
def demo(
    plain: Annotated[bool, typer.Option(help="Print lines instead of a live display.")] = False,
    speed: Annotated[float, typer.Option(help="How fast the story plays: virtual seconds per second; 0 = as fast as possible.", min=0)] = 8.0,
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 1,
) -> None:
    """Play a distributed training run from queue to success, with a killed worker, under virtual time."""
    from kubemini.cli.demo import run

    run(plain=plain, speed=speed, seed=seed)


@app.command()
def explore(
    scenario: Annotated[
        list[str], typer.Argument(help="Manifests that are applied, or one FILE.py:NAME: a Scenario, or an async function that takes the cluster.")
    ],
    fleet: Annotated[
        str | None, typer.Option(help="Nodes of the cluster: a preset, a YAML file, or none. Default: the scenario's own, or cpu.")
    ] = None,
    lives: Annotated[int, typer.Option(min=1, help="How many lives are played.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    jobs: Annotated[int, typer.Option(min=0, help="Processes that play; 0 = one for each core.")] = 0,
    dask: Annotated[str, typer.Option(help="Address of a Dask scheduler whose workers play instead.")] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="Where a counterexample is written.")] = Path("counterexample.json"),
    controllers: Annotated[str | None, typer.Option(help="Controllers to run, as for serve.")] = None,
    pods: Annotated[str | None, typer.Option(help="What pods do unless annotated: forever, or programs.")] = None,
    kubernetes_version: Annotated[str | None, typer.Option(help="Kubernetes version to emulate.")] = None,
    feature_gates: Annotated[list[str] | None, typer.Option(help="Feature gates, as for serve. May be given more than once.")] = None,
    kueue_config: Annotated[Path | None, typer.Option(help="Kueue's Configuration as YAML.")] = None,
) -> None:
    """Search for a life in which a promise is broken: pods crash, nodes are lost, controllers restart, requests are lost, while all invariants are checked at every commit.

    Ends with 0 where nothing was found, with 1 and a file for `kubemini replay` otherwise.
    """
    from kubemini.cli.explore import arguments, run

    given = arguments(
        fleet=fleet, controllers=controllers, pods=pods, kubernetes_version=kubernetes_version, feature_gates=feature_gates, kueue_config=kueue_config
    )
    raise typer.Exit(run(scenario, lives=lives, seed=seed, jobs=jobs, dask=dask, output=output, cluster=given))


@app.command()
def replay(
    counterexample: Annotated[Path, typer.Argument(help="A file that `kubemini explore` wrote.")],
    only: Annotated[str, typer.Option(help="A regular expression: only commits whose line matches.")] = "",
    last: Annotated[int, typer.Option(min=0, help="Only so many lines, the last ones; 0 = all.")] = 0,
    step: Annotated[bool, typer.Option("--step", help="One line at a time: Enter goes on, c to the end, q ends.")] = False,
) -> None:
    """Play a counterexample again, the same byte for byte, and tell each commit and what it changed. Ends with 1 while it is still one."""
    from kubemini.cli.replay import run

    raise typer.Exit(run(counterexample, only=only, last=last, step=step))


@app.command()
def bench(
    only: Annotated[str, typer.Option(help="A regular expression on the scenario's name.")] = "",
    save: Annotated[Path | None, typer.Option(help="Write the results as JSON here.")] = None,
    compare: Annotated[Path | None, typer.Option(help="Compare with results saved before.")] = None,
    scale: Annotated[float, typer.Option(help="Multiply every scenario's size.", min=0.001)] = 1.0,
) -> None:
    """Measure the store, the request path and the control loops."""
    from kubemini.cli.bench import run

    run(only=only, save=save, compare=compare, scale=scale)


@app.command()
def version() -> None:
    """Print kubemini's version."""
    _print_version(True)
