# HTTP/3 by aioquic: h3-client.py PORT SIZE... : one GET after the other on one connection; a line for each: bytes, status, seconds.
import asyncio, ssl, sys, time
from aioquic.asyncio import QuicConnectionProtocol
from aioquic.asyncio.client import connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.waiting = {}

    async def get(self, size):
        stream = self._quic.get_next_available_stream_id()
        answer = {"bytes": 0, "status": "none", "done": asyncio.get_running_loop().create_future()}
        self.waiting[stream] = answer
        path = f"/{size}".encode()
        headers = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", path)]
        self.http.send_headers(stream, headers, end_stream=True)
        self.transmit()
        await answer["done"]
        return answer

    def quic_event_received(self, event):
        for e in self.http.handle_event(event):
            answer = self.waiting.get(getattr(e, "stream_id", -1))
            if answer is None:
                continue
            if isinstance(e, HeadersReceived):
                answer["status"] = dict(e.headers)[b":status"].decode()
            elif isinstance(e, DataReceived):
                answer["bytes"] += len(e.data)
            if getattr(e, "stream_ended", False) and not answer["done"].done():
                answer["done"].set_result(None)


async def main():
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
    async with connect("127.0.0.1", int(sys.argv[1]), configuration=configuration, create_protocol=Client) as client:
        for size in sys.argv[2:]:
            begun = time.monotonic()
            answer = await client.get(size)
            print(answer["bytes"], answer["status"], f"{time.monotonic() - begun:.3f}", flush=True)


asyncio.run(main())
