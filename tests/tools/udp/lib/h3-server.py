# HTTP/3 by aioquic: h3-server.py PORT CERT KEY. GET /N answers N bytes.
import asyncio, sys
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration


class Server(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)

    def quic_event_received(self, event):
        for e in self.http.handle_event(event):
            if isinstance(e, HeadersReceived):
                self.answer(e.stream_id, int(dict(e.headers)[b":path"][1:]))

    def answer(self, stream, size):
        self.http.send_headers(stream, [(b":status", b"200"), (b"content-length", str(size).encode())])
        self.http.send_data(stream, b"x" * size, end_stream=True)
        self.transmit()


async def main():
    port, cert, key = sys.argv[1:4]
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(cert, key)
    await serve("127.0.0.1", int(port), configuration=configuration, create_protocol=Server)
    print("listening", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
