// An error that nobody caught, in a real program: raised from outside through the debugger that Node.js opens on SIGUSR1.
import { once } from 'node:events';
import { eventually, type Program } from '@tunnel/testkit';
import { WebSocket } from 'ws';

/** So that several programs can be looked into at once: each opens its debugger on any free port of loopback. */
export const INSPECTABLE = { NODE_OPTIONS: '--inspect-port=127.0.0.1:0' };

const LISTENING = /Debugger listening on (ws:\/\/127\.0\.0\.1:\S+)/;

/** Throws in the next turn of the process `pid`, which writes to the output of `program`. */
export const throwIn = async (program: Program, pid: number, message: string): Promise<void> => {
  const before = program.stderr.length;
  process.kill(pid, 'SIGUSR1');
  const url = await eventually(() => {
    const [found] = program.stderr.slice(before).flatMap((line) => LISTENING.exec(line)?.[1] ?? []);
    if (found === undefined) throw new Error('no debugger yet');
    return found;
  });
  const socket = new WebSocket(url);
  await once(socket, 'open');
  const expression = `setTimeout(function raised() { throw new Error(${JSON.stringify(message)}) }, 10)`;
  socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression } }));
  await once(socket, 'message');
  socket.close();
};
