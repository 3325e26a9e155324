import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairTurns, type Turn } from './fair-turns.ts';

class Log {
  readonly begun: string[] = [];
  readonly gaveWay: string[] = [];

  turn(owner: string, name: string): Turn {
    return {
      owner,
      begin: () => void this.begun.push(`${owner}${name}`),
      giveWay: () => void this.gaveWay.push(`${owner}${name}`),
    };
  }
}

describe('turns', () => {
  it('who brings much waits for itself: another’s first comes next, not behind all of it', () => {
    const log = new Log();
    const turns = new FairTurns({ atOnce: 1, waitingMax: 10 });
    for (const name of ['1', '2', '3', '4']) turns.enter(log.turn('a', name));
    for (const name of ['1', '2']) turns.enter(log.turn('b', name));
    for (let count = 0; count < 5; count += 1) turns.done();
    expect(log.begun).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'a4']);
  });

  it('where all the room to wait is taken by one, another gets in, and the last of that one gives way', () => {
    const log = new Log();
    const turns = new FairTurns({ atOnce: 1, waitingMax: 3 });
    expect(['1', '2', '3', '4', '5'].map((name) => turns.enter(log.turn('a', name)))).toEqual([
      ...[true, true, true, true, false],
    ]);
    expect([turns.hasRoomFor('a'), turns.hasRoomFor('b')]).toEqual([false, true]);
    expect(turns.enter(log.turn('b', '1'))).toBe(true);
    expect([log.gaveWay, turns.waiting]).toEqual([['a4'], 3]);
    // Two and one: nobody has more than the other but by one.
    expect(turns.enter(log.turn('b', '2'))).toBe(false);
    turns.done();
    turns.done();
    expect(log.begun).toEqual(['a1', 'a2', 'b1']);
  });

  it('whoever leaves leaves its room, and never begins', () => {
    const log = new Log();
    const turns = new FairTurns({ atOnce: 1, waitingMax: 1 });
    turns.enter(log.turn('a', '1'));
    const second = log.turn('a', '2');
    turns.enter(second);
    expect([turns.leave(second), turns.leave(second), turns.waiting]).toEqual([true, false, 0]);
    turns.done();
    expect([log.begun, turns.running]).toEqual([['a1'], 0]);
  });

  it('in any order of events: within the bounds, nobody is lost, and none waits while there is room', () => {
    const events = fc.array(fc.constantFrom('a', 'a', 'a', 'b', 'c', 'done', 'leave'), { maxLength: 200 });
    fc.assert(
      fc.property(events, (steps) => {
        const log = new Log();
        const turns = new FairTurns({ atOnce: 2, waitingMax: 4 });
        const waiting: Turn[] = [];
        let entered = 0;
        let left = 0;
        let done = 0;
        for (const [at, step] of steps.entries()) {
          if (step === 'done') {
            if (turns.running === 0) continue;
            turns.done();
            done += 1;
          } else if (step === 'leave') {
            if (waiting.some((turn) => turns.leave(turn))) left += 1;
          } else {
            const turn = log.turn(step, String(at));
            const hadRoom = turns.hasRoomFor(step);
            const isIn = turns.enter(turn);
            expect(isIn).toBe(hadRoom);
            if (isIn) entered += 1;
            waiting.push(turn);
          }
          expect(turns.running).toBeLessThanOrEqual(2);
          expect(turns.waiting).toBeLessThanOrEqual(4);
          expect(turns.waiting === 0 || turns.running === 2).toBe(true);
          expect(waiting.filter((turn) => turns.isWaiting(turn))).toHaveLength(turns.waiting);
          expect(log.begun.length - done).toBe(turns.running);
          expect(entered).toBe(log.begun.length + log.gaveWay.length + left + turns.waiting);
        }
      }),
      { numRuns: 300 },
    );
  });
});
