import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairTurns, InFlight, type Turn } from './in-flight.ts';

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

describe('a counter of operations in flight', () => {
  it('limits the total and each key, frees room when an operation ends, and keeps no key without operations', () => {
    const calls = new InFlight({ atOnce: 3, perKey: 2 });
    expect(['a', 'a', 'a', 'b', 'c'].map((key) => calls.begin(key))).toEqual([true, true, false, true, false]);
    expect([calls.hasRoom('a'), calls.hasRoom('c'), calls.of('a'), calls.total, calls.keys]).toEqual([
      ...[false, false, 2, 3, 2],
    ]);
    calls.end('a');
    expect([calls.hasRoom('a'), calls.hasRoom('b'), calls.total]).toEqual([true, true, 2]);
    for (const key of ['a', 'b']) calls.end(key);
    expect([calls.total, calls.keys]).toEqual([0, 0]);
  });

  it('has no limit where none is set, and works without keys', () => {
    const all = new InFlight({ atOnce: 1 });
    expect([all.begin(), all.begin()]).toEqual([true, false]);
    const each = new InFlight({ perKey: 1 });
    for (let key = 0; key < 1000; key += 1) expect(each.begin(`${key}`)).toBe(true);
    expect([each.total, each.begin('7')]).toEqual([1000, false]);
  });

  it('counts operations that have begun and not ended, in any order of events', () => {
    const event = fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), isBegin: fc.boolean() });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 200 }), (events) => {
        const calls = new InFlight({ atOnce: 5, perKey: 3 });
        const model = new Map<string, number>();
        const total = (): number => [...model.values()].reduce((sum, count) => sum + count, 0);
        for (const { key, isBegin } of events) {
          const count = model.get(key) ?? 0;
          if (isBegin) {
            const hasRoom = count < 3 && total() < 5;
            expect([calls.hasRoom(key), calls.begin(key)]).toEqual([hasRoom, hasRoom]);
            if (hasRoom) model.set(key, count + 1);
          } else {
            calls.end(key);
            model.set(key, Math.max(0, count - 1));
          }
          expect([calls.total, calls.of(key)]).toEqual([total(), model.get(key) ?? 0]);
          expect(calls.keys).toBe([...model.values()].filter((held) => held > 0).length);
        }
      }),
    );
  });
});

describe('a queue of fair turns', () => {
  it("alternates between owners: an owner's first turn is not behind the whole backlog of another owner", () => {
    const log = new Log();
    const turns = new FairTurns({ atOnce: 1, waitingMax: 10 });
    for (const name of ['1', '2', '3', '4']) turns.enter(log.turn('a', name));
    for (const name of ['1', '2']) turns.enter(log.turn('b', name));
    for (let count = 0; count < 5; count += 1) turns.done();
    expect(log.begun).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'a4']);
  });

  it('that one owner has filled admits another owner and evicts the last turn of the first', () => {
    const log = new Log();
    const turns = new FairTurns({ atOnce: 1, waitingMax: 3 });
    expect(['1', '2', '3', '4', '5'].map((name) => turns.enter(log.turn('a', name)))).toEqual([
      ...[true, true, true, true, false],
    ]);
    expect([turns.hasRoomFor('a'), turns.hasRoomFor('b')]).toEqual([false, true]);
    expect(turns.enter(log.turn('b', '1'))).toBe(true);
    expect([log.gaveWay, turns.waiting]).toEqual([['a4'], 3]);
    // Owner a waits with two turns and owner b with one: a difference of one evicts no turn.
    expect(turns.enter(log.turn('b', '2'))).toBe(false);
    turns.done();
    turns.done();
    expect(log.begun).toEqual(['a1', 'a2', 'b1']);
  });

  it('gives the room of a turn that leaves to others, and never begins that turn', () => {
    const log = new Log();
    const turns = new FairTurns({ atOnce: 1, waitingMax: 1 });
    turns.enter(log.turn('a', '1'));
    const second = log.turn('a', '2');
    turns.enter(second);
    expect([turns.leave(second), turns.leave(second), turns.waiting]).toEqual([true, false, 0]);
    turns.done();
    expect([log.begun, turns.running]).toEqual([['a1'], 0]);
  });

  it('keeps its limits, loses no turn, and makes none wait while there is room, in any order of events', () => {
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
