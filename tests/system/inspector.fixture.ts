// Access to a real program through the debugger that Node.js opens on SIGUSR1: to raise an uncaught error, and to measure memory.
import { once } from 'node:events';
import { eventually, type Program } from '@tunnel/testkit';
import { WebSocket } from 'ws';

/**
 * Environment of programs to be debugged: the debugger opens on a free port of loopback, so that several programs can be debugged at
 * once.
 */
export const INSPECTABLE = { NODE_OPTIONS: '--inspect-port=127.0.0.1:0' };

const LISTENING = /Debugger listening on (ws:\/\/127\.0\.0\.1:\S+)/;

/** Opens the debugger of a process. Possible only once per process, because a second signal prints no address. */
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

/** Throws an uncaught error in the process `pid`, which shares the output of `program`. */
export const throwIn = async (program: Program, pid: number, message: string): Promise<void> => {
  const socket = await openDebugger(program, pid);
  const expression = `setTimeout(function raised() { throw new Error(${JSON.stringify(message)}) }, 10)`;
  await call(socket, 'Runtime.evaluate', { expression });
  socket.close();
};

export interface HeldMemory {
  /** Resident memory of the whole process, including pages that the allocator keeps for later. */
  readonly residentMb: number;
  /** Memory of objects and buffers that are still referenced. */
  readonly referredMb: number;
}

export interface MemoryProbe {
  /** Returns the memory in use, after a full garbage collection. */
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
