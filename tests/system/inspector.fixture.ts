// A real program, looked into from outside through the debugger that Node.js opens on SIGUSR1: an error that nobody caught, what memory is held.
import { once } from 'node:events';
import { eventually, type Program } from '@tunnel/testkit';
import { WebSocket } from 'ws';

/** So that several programs can be looked into at once: each opens its debugger on any free port of loopback. */
export const INSPECTABLE = { NODE_OPTIONS: '--inspect-port=127.0.0.1:0' };

const LISTENING = /Debugger listening on (ws:\/\/127\.0\.0\.1:\S+)/;

/** Once for each process: a second signal says nothing new. */
const openDebugger = async (program: Program, pid: number): Promise<WebSocket> => {
  const before = program.stderr.length;
  process.kill(pid, 'SIGUSR1');
  const url = await eventually(() => {
    const [found] = program.stderr.slice(before).flatMap((line) => LISTENING.exec(line)?.[1] ?? []);
    if (found === undefined) throw new Error('no debugger yet');
    return found;
  });
  const socket = new WebSocket(url);
  await once(socket, 'open');
  return socket;
};

const call = async (socket: WebSocket, method: string, params: object = {}): Promise<unknown> => {
  socket.send(JSON.stringify({ id: 1, method, params }));
  const [answer] = (await once(socket, 'message')) as [Buffer];
  const { error, result } = JSON.parse(answer.toString()) as { error?: { message: string }; result?: unknown };
  if (error !== undefined) throw new Error(`${method}: ${error.message}`);
  return result;
};

/** Throws in the next turn of the process `pid`, which writes to the output of `program`. */
export const throwIn = async (program: Program, pid: number, message: string): Promise<void> => {
  const socket = await openDebugger(program, pid);
  const expression = `setTimeout(function raised() { throw new Error(${JSON.stringify(message)}) }, 10)`;
  await call(socket, 'Runtime.evaluate', { expression });
  socket.close();
};

export interface HeldMemory {
  /** Of the whole process, with what its allocator keeps for later. */
  readonly residentMb: number;
  /** Of objects and buffers that somebody still refers to. */
  readonly referredMb: number;
}

export interface MemoryProbe {
  /** Without garbage: all of it is collected first. */
  held(): Promise<HeldMemory>;
  close(): Promise<void>;
}

export const memoryProbeOf = async (program: Program): Promise<MemoryProbe> => {
  const socket = await openDebugger(program, program.pid);
  return {
    held: async () => {
      await call(socket, 'HeapProfiler.collectGarbage');
      const expression = 'process.memoryUsage()';
      const answer = await call(socket, 'Runtime.evaluate', { expression, returnByValue: true });
      const { rss, heapUsed, external } = (answer as { result: { value: NodeJS.MemoryUsage } }).result.value;
      return { residentMb: rss / 1e6, referredMb: (heapUsed + external) / 1e6 };
    },
    close: async () => socket.terminate(),
  };
};
