// Random events over weeks of a server: backups, failures, gaps in the archive, restores to the past, damaged manifests, changed settings
// and clocks. After every event, each backup that is left still has all log that was archived since its start.
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { backupName } from './plan.rules.ts';
import { planRetention } from './retention.rules.ts';
import { backupDue } from './schedule.rules.ts';
import { ARCHIVED, parseArchivedName, parseSegment, reachFrom, type Segment, segmentName } from './wal-names.rules.ts';

const HOUR = 3_600_000;
/** Time until the next segment of the log is archived. */
const TICK = 6 * HOUR;

type Event =
  | { readonly kind: 'ticks'; readonly ticks: number }
  | { readonly kind: 'backup-fails' }
  | { readonly kind: 'archive-gap'; readonly segments: number }
  | { readonly kind: 'restore'; readonly back: number }
  | { readonly kind: 'damage'; readonly which: number }
  | { readonly kind: 'keep'; readonly keep: number }
  | { readonly kind: 'clock'; readonly hours: number };

const EVENT: fc.Arbitrary<Event> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('ticks' as const), ticks: fc.integer({ min: 1, max: 12 }) }) },
  fc.record({ kind: fc.constant('backup-fails' as const) }),
  fc.record({ kind: fc.constant('archive-gap' as const), segments: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ kind: fc.constant('restore' as const), back: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ kind: fc.constant('damage' as const), which: fc.nat(10) }),
  fc.record({ kind: fc.constant('keep' as const), keep: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ kind: fc.constant('clock' as const), hours: fc.integer({ min: -3, max: 3 }) }),
);

interface Backup {
  readonly name: string;
  readonly start: Segment;
  readonly finishedAt: number;
  isReadable: boolean;
}

class Server {
  now = Date.UTC(2026, 0, 1);
  monotonic = 0;
  keep = 3;
  at: Segment = { timeline: 1, number: 5 };
  newestTimeline = 1;
  failsNext = false;
  failures = 0;
  failedAt = 0;
  backedUpAt = Number.NEGATIVE_INFINITY;
  backups: Backup[] = [];
  archive = new Set<string>();
  readonly begunAt: number[] = [];

  apply(event: Event): void {
    switch (event.kind) {
      case 'ticks':
        for (let tick = 0; tick < event.ticks; tick += 1) this.#tick();
        return;
      case 'backup-fails':
        this.failsNext = true;
        return;
      case 'archive-gap':
        this.at = { ...this.at, number: this.at.number + event.segments };
        return;
      case 'restore':
        this.newestTimeline += 1;
        this.at = { timeline: this.newestTimeline, number: Math.max(5, this.at.number - event.back) };
        return;
      case 'damage': {
        const backup = this.backups[event.which];
        if (backup !== undefined) backup.isReadable = false;
        return;
      }
      case 'keep':
        this.keep = event.keep;
        return;
      case 'clock':
        this.now += event.hours * HOUR;
    }
  }

  #tick(): void {
    this.now += TICK;
    this.monotonic += TICK;
    this.archive.add(segmentName(this.at) + ARCHIVED);
    this.at = { ...this.at, number: this.at.number + 1 };
    const due = backupDue(
      {
        everyMs: 24 * HOUR,
        finishedAt: this.backups.filter(({ isReadable }) => isReadable).map(({ finishedAt }) => finishedAt),
        hasGap: false,
        failures: this.failures,
        sinceFailureMs: this.monotonic - this.failedAt,
        sinceGapBackupMs: Number.POSITIVE_INFINITY,
      },
      this.now,
    );
    if (due !== null) this.#backUp();
    this.#retain();
  }

  #backUp(): void {
    if (this.failsNext) {
      this.failsNext = false;
      this.failures += 1;
      this.failedAt = this.monotonic;
      return;
    }
    this.failures = 0;
    this.backedUpAt = this.monotonic;
    this.begunAt.push(this.monotonic);
    const name = backupName(this.now, new Set(this.backups.map((backup) => backup.name)));
    this.backups.push({ name, start: this.at, finishedAt: this.now, isReadable: true });
  }

  #retain(): void {
    const stored = this.backups.map(({ name, start, isReadable }) => ({
      name,
      walStart: isReadable ? segmentName(start) : null,
    }));
    const plan = planRetention(stored, [...this.archive], this.keep);
    if (plan.backups.length === 0 && plan.wal.length === 0) return;
    const before = new Map(this.backups.map((backup) => [backup.name, neededBy(backup, this.archive)]));
    this.backups = this.backups.filter(({ name }) => !plan.backups.includes(name));
    for (const name of plan.wal) this.archive.delete(name);
    for (const backup of this.backups) {
      // Also for a backup with a damaged manifest: its log may be used by hand.
      expect(neededBy(backup, this.archive)).toEqual(before.get(backup.name));
    }
    expect(this.backups.filter(({ isReadable }) => isReadable).length).toBeLessThanOrEqual(this.keep);
  }
}

const neededBy = ({ start }: Backup, archive: ReadonlySet<string>): string[] =>
  [...archive]
    .filter((name) => (parseArchivedName(name) as { segment: Segment }).segment.number >= start.number)
    .sort();

it('a backup that is left always has its log, at most `keep` backups are left, and a working server takes one each day', () => {
  fc.assert(
    fc.property(fc.array(EVENT, { minLength: 1, maxLength: 40 }), (events) => {
      const server = new Server();
      for (const event of events) server.apply(event);
      for (const [index, at] of server.begunAt.entries()) {
        const before = server.begunAt[index - 1];
        if (before !== undefined) expect(at - before).toBeGreaterThanOrEqual(TICK);
      }
      // After a quiet week, whatever happened before, there is a backup of the last day that reaches to the present.
      const quiet = { kind: 'ticks', ticks: 28 } as const;
      server.apply(quiet);
      const newest = server.backups.filter(({ isReadable }) => isReadable).at(-1);
      expect(newest).toBeDefined();
      if (newest === undefined) return;
      expect(server.now - newest.finishedAt).toBeLessThanOrEqual(24 * HOUR);
      const segments = [...server.archive].map((name) => parseSegment(name.slice(0, 24)) as Segment);
      const own = segments.filter(({ timeline }) => timeline === newest.start.timeline);
      const { last } = reachFrom(newest.start, own);
      expect(last?.number ?? newest.start.number - 1).toBe(server.at.number - 1);
    }),
  );
});
