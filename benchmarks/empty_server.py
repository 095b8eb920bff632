"""A gRPC server that answers without looking: no system of this flavour can be faster."""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import grpc

from hubbub.v1 import report_pb2, report_pb2_grpc
from hubbub_aggregator.listeners import PUBLIC_OPTIONS
from hubbub_aggregator.settings import Settings


class _Empty(report_pb2_grpc.ReportServiceServicer):
    def SubmitReports(
        self, request: report_pb2.SubmitReportsRequest, context: grpc.ServicerContext
    ) -> report_pb2.SubmitReportsResponse:
        return report_pb2.SubmitReportsResponse(statuses=[report_pb2.REPORT_STATUS_COUNTED])


def _serve(keys: Path, pipe: Connection, processor: int | None) -> None:
    """Serve until the pipe says stop."""
    if processor is not None:
        os.sched_setaffinity(0, {processor})
    server = grpc.server(
        futures.ThreadPoolExecutor(Settings().threads),
        options=PUBLIC_OPTIONS,
        compression=grpc.Compression.NoCompression,
    )
    report_pb2_grpc.add_ReportServiceServicer_to_server(_Empty(), server)
    pair = ((keys / "server.key").read_bytes(), (keys / "server.crt").read_bytes())
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    server.start()
    pipe.send((os.getpid(), f"127.0.0.1:{port}"))
    pipe.recv()
    server.stop(None).wait()


@contextmanager
def empty_server(keys: Path, processor: int | None = None) -> Iterator[tuple[int, str]]:
    """Its process, kept to one processor if that is given, and its address.

    It has the certificate of a keys folder, and the aggregator's own options.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(keys, theirs, processor), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("stop")
        process.join()
