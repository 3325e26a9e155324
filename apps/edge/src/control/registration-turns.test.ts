import type { MessageOf } from '@tunnel/protocol';
import { FakeClock } from '@tunnel/testkit';
import { beforeEach, expect, it } from 'vitest';
import { paceOf } from './control.fixture.ts';
import { CONTROL_REGISTRATIONS_WAITING, RegistrationTurns, type TurnMessage } from './registration-turns.ts';

const registration = (requestId: string): MessageOf<'RegisterTunnel'> => ({
  type: 'RegisterTunnel',
  request_id: requestId,
  name: 'db',
  protocol: 'tcp',
  local_addr: '127.0.0.1:1',
  host_header: 'local',
  local_protocol: 'http1',
  capture: true,
});

let begun: string[];
/** Completes the current registration. */
let end: () => void;
let underWay: number;
/** Highest number of concurrent registrations so far. */
let most: number;
beforeEach(() => {
  begun = [];
  underWay = 0;
  most = 0;
});

const handle = ({ request_id: id }: TurnMessage): Promise<void> => {
  begun.push(id);
  underWay += 1;
  most = Math.max(most, underWay);
  return new Promise((resolve) => {
    end = () => {
      underWay -= 1;
      resolve();
    };
  });
};

it('registrations run one at a time, even if a registration is added by the callback for free room', async () => {
  const clock = new FakeClock();
  const rooms: number[] = [];
  const turns: RegistrationTurns = new RegistrationTurns({
    clock,
    pace: paceOf(),
    handle,
    onRoom: () => {
      rooms.push(begun.length);
      turns.add(registration('late'), 100);
    },
    onError: (error) => {
      throw error;
    },
  });
  const count = CONTROL_REGISTRATIONS_WAITING + 1;
  for (let n = 0; n < count; n += 1) turns.add(registration(`r${n}`), 100);
  expect([turns.isFull, begun]).toEqual([true, ['r0']]);
  while (!turns.isIdle) {
    end();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(most).toBe(1);
  expect(rooms).toEqual([CONTROL_REGISTRATIONS_WAITING / 2 + 1]);
  expect(begun).toEqual([...Array.from({ length: count }, (_, n) => `r${n}`), 'late']);
});

it('no registration starts after stop()', async () => {
  const clock = new FakeClock();
  const turns = new RegistrationTurns({
    clock,
    pace: paceOf(),
    handle,
    onRoom: () => {},
    onError: (error) => {
      throw error;
    },
  });
  turns.add(registration('r1'), 100);
  turns.add(registration('r2'), 100);
  turns.stop();
  end();
  await new Promise((resolve) => setImmediate(resolve));
  turns.add(registration('r3'), 100);
  expect(begun).toEqual(['r1']);
});
