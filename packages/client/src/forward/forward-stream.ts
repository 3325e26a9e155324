// One visitor: dial the local service, tell the edge how that went, then join the two.
import type { Fault } from '@tunnel/errors';
import { type ByteDuplex, type MuxStream, type SocketDuplex, type Splice, splice } from '@tunnel/mux';
import type { Traffic } from '../traffic.ts';
import { DialFailed, type DialLocal, dialLocal, type LocalTarget } from './dial-local.ts';

export interface ForwardHandlers {
  /** The local service did not answer; the visitor was refused. */
  onDialFailed(fault: Fault): void;
  /** The visitor is gone, however it went. Called exactly once. */
  onDone(): void;
  /** What stands for the visitor's end in the joint: itself, or one that looks at what passes. */
  readonly wrap?: (visitor: ByteDuplex) => ByteDuplex;
}

export const forwardStream = async (
  stream: MuxStream,
  target: LocalTarget,
  traffic: Traffic,
  handlers: ForwardHandlers,
  dial: DialLocal = dialLocal,
): Promise<void> => {
  traffic.started();
  const local = await reachLocal(stream, target, handlers, dial);
  if (local === null) {
    traffic.ended();
    handlers.onDone();
    return;
  }
  stream.accept();
  join(handlers.wrap?.(stream) ?? stream, local, traffic, handlers);
};

const reachLocal = async (
  stream: MuxStream,
  target: LocalTarget,
  handlers: ForwardHandlers,
  dial: DialLocal,
): Promise<SocketDuplex | null> => {
  try {
    const local = await dial(target);
    if (stream.state === 'offered') return local;
    // The visitor left while we were dialling; the service must not wait for it.
    local.reset({ code: 'cancelled', text: 'the visitor left' });
    return null;
  } catch (error) {
    if (!(error instanceof DialFailed)) throw error;
    stream.refuse(error.refusal);
    handlers.onDialFailed(error.fault);
    return null;
  }
};

const join = (visitor: ByteDuplex, local: SocketDuplex, traffic: Traffic, handlers: ForwardHandlers): void => {
  // Both ends may be over before splice() returns.
  let joined: Splice | undefined;
  let done = false;
  const finish = (): void => {
    done = true;
    if (joined === undefined) return;
    traffic.ended(joined);
    handlers.onDone();
  };
  joined = splice(visitor, local, { onDone: finish });
  if (done) finish();
  else traffic.joined(joined);
};
