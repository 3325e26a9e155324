// A server with certificates from the authority of a test, as seen by visitors that trust only the root of the authority.
import { connect as connectHttp2 } from 'node:http2';
import { type Agent, request } from 'node:https';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import type { AcmeServer } from '@tunnel/testkit';
import { type Answer, wholeAnswer } from '../http-tunnels.fixture.ts';

interface Asked {
  readonly agent?: Agent | false;
  readonly port?: number;
  readonly path?: string;
}

export abstract class CertifiedServer {
  abstract readonly authority: AcmeServer;
  /** Port for visitors over TLS. */
  abstract get tlsPort(): number;

  /** Returns a connection with its handshake in progress, for libraries that take a socket and wait for the handshake. */
  dial(host: string, options: ConnectionOptions = {}): TLSSocket {
    return connectTls({ host: '127.0.0.1', port: this.tlsPort, ca: this.authority.root, servername: host, ...options });
  }

  shakeHands(host: string, port = this.tlsPort, session?: Buffer): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const socket = this.dial(host, { port, ...(session && { session }) });
      socket.on('secureConnect', () => resolve(socket)).on('error', reject);
    });
  }

  async serialOf(host: string, port?: number): Promise<string> {
    const socket = await this.shakeHands(host, port);
    const serial = socket.getPeerX509Certificate()?.serialNumber ?? '';
    socket.destroy();
    return serial.toLowerCase();
  }

  /** Returns the status of a GET over HTTP/1.1. */
  async ask(host: string, agent: Agent | false = false): Promise<number> {
    return (await this.answer(host, { agent })).status;
  }

  async textOf(host: string): Promise<string> {
    return (await this.answer(host)).text;
  }

  answer(host: string, { agent = false, port = this.tlsPort, path = '/' }: Asked = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const trust = { ca: this.authority.root, servername: host };
      const sent = request({ hostname: '127.0.0.1', port, path, ...trust, headers: { host }, agent });
      sent.on('response', (response) => void wholeAnswer(response).then(resolve, reject));
      sent.on('error', reject).end();
    });
  }

  askHttp2(host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const socket = this.dial(host, { ALPNProtocols: ['h2'] });
      const session = connectHttp2(`https://${host}`, { createConnection: () => socket });
      session.on('error', reject);
      const stream = session.request({ ':path': '/' });
      stream.on('response', (headers) => resolve(Number(headers[':status'])));
      stream.on('error', reject);
      stream.resume().on('end', () => session.close());
    });
  }
}
