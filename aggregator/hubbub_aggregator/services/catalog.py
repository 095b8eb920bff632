"""CatalogService: the bundle in force, as it was signed."""

import grpc

from hubbub.v1 import contract_pb2, report_pb2, report_pb2_grpc


class CatalogService(report_pb2_grpc.CatalogServiceServicer):
    def __init__(self, signed_bundle: bytes) -> None:
        self._response = report_pb2.GetBundleResponse(
            signed_bundle=contract_pb2.SignedBundle.FromString(signed_bundle)
        )

    def GetBundle(
        self, request: report_pb2.GetBundleRequest, context: grpc.ServicerContext
    ) -> report_pb2.GetBundleResponse:
        return self._response
