// One visitor of a tcp tunnel: dial the local service, tell the edge how that went, then join the two.
import { Fault } from '@tunnel/errors';
import { connectSocket, type MuxStream, type SocketEnd, type Splice, splice } from '@tunnel/mux';
import { LIMITS, type StreamReason } from '@tunnel/protocol';
import { codeOf, reasonOf } from '../dial-faults.ts';
import type { Traffic } from '../traffic.ts';

export interface TcpTarget {
  readonly host: string;
  readonly port: number;
}

export interface ForwardHandlers {
  /** The local service did not answer; the visitor was refused. */
  onDialFailed(fault: Fault): void;
  /** The visitor is gone, however it went. Called exactly once. */
  onDone(): void;
}

type Connect = typeof connectSocket;

export const forwardTcp = async (
  stream: MuxStream,
  target: TcpTarget,
  traffic: Traffic,
  handlers: ForwardHandlers,
  connect: Connect = connectSocket,
): Promise<void> => {
  traffic.started();
  const local = await dialLocal(stream, target, handlers, connect);
  if (local === null) {
    traffic.ended();
    handlers.onDone();
    return;
  }
  stream.accept();
  join(stream, local, traffic, handlers);
};

const dialLocal = async (
  stream: MuxStream,
  { host, port }: TcpTarget,
  handlers: ForwardHandlers,
  connect: Connect,
): Promise<SocketEnd | null> => {
  try {
    const local = await connect({ host, port, timeoutMs: LIMITS.LOCAL_DIAL_TIMEOUT_MS });
    if (stream.state === 'offered') return local;
    // The visitor left while we were dialling; the service must not wait for it.
    local.reset({ code: 'cancelled', text: 'the visitor left' });
    return null;
  } catch (error) {
    const fault = new Fault(
      'CLIENT_LOCAL_DIAL',
      { target: `${host}:${port}`, reason: reasonOf(error) },
      { cause: error },
    );
    stream.refuse(refusalOf(error, fault));
    handlers.onDialFailed(fault);
    return null;
  }
};

const refusalOf = (error: unknown, fault: Fault): StreamReason => ({
  code: codeOf(error) === 'ETIMEDOUT' ? 'dial-timeout' : 'dial-refused',
  text: fault.message,
});

const join = (stream: MuxStream, local: SocketEnd, traffic: Traffic, handlers: ForwardHandlers): void => {
  // Both ends may be over before splice() returns.
  let joined: Splice | undefined;
  let done = false;
  const finish = (): void => {
    done = true;
    if (joined === undefined) return;
    traffic.ended(joined);
    handlers.onDone();
  };
  joined = splice(stream, local, { onDone: finish });
  if (done) finish();
  else traffic.joined(joined);
};
