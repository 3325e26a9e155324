// Sends back what it gets; after the peer's FIN it sends the rest and then its own (half-close).
import { startTcpServer, type TcpServer, type TcpServerOptions } from './tcp-server.ts';

export const startEchoServer = (options: TcpServerOptions = {}): Promise<TcpServer> =>
  startTcpServer((socket) => {
    socket.pipe(socket);
  }, options);
