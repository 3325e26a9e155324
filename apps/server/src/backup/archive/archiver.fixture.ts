// An archiver with a spool that the test fills in place of PostgreSQL.
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Clock, Logger } from '@tunnel/runtime';
import { FastClock } from '@tunnel/testkit';
import { SWITCHED_OFF, SWITCHED_ON } from '../../embedded-postgres/log-mode.ts';
import { parseSegment, type Segment, segmentName } from '../wal-names.rules.ts';
import { Archiver, type ArchiverOptions } from './archiver.ts';
import { Spool } from './spool.ts';

export const seg = (number: number, timeline = 1): string => segmentName({ timeline, number });

export class ArchiverTrial {
  readonly cluster: string;
  readonly spool: string;
  readonly status: string;
  readonly walDir: string;
  readonly lines: { readonly level: string; readonly msg: string; readonly reason?: string }[] = [];
  failures = 0;
  switchedOn = 0;
  /** Number of attempts to end the current segment. */
  switches = 0;
  /** Result of the next switch of the log. */
  switchesAfter: Segment | Error = new Error('the database is away');
  readonly logger: Logger;
  readonly #made: Archiver[] = [];

  constructor(folder: string) {
    this.cluster = join(folder, 'postgres');
    this.spool = join(this.cluster, 'tunnel-spool');
    this.status = join(this.cluster, 'pg_wal', 'archive_status');
    this.walDir = join(folder, 'backups', 'wal');
    for (const path of [this.spool, this.status, this.walDir]) mkdirSync(path, { recursive: true });
    writeFileSync(join(this.spool, SWITCHED_ON), '');
    const log =
      (level: string) =>
      (fields: object, msg: string): void =>
        void this.lines.push({ ...fields, level, msg });
    this.logger = { debug: () => {}, info: log('info'), warn: log('warn'), error: log('error') } as unknown as Logger;
  }

  archiver(more: Partial<ArchiverOptions> = {}, clock: Clock = new FastClock(50)): Archiver {
    const archiver = new Archiver({
      spool: new Spool(this.spool, this.cluster),
      walDir: this.walDir,
      maxBytes: 64 * 1024 * 1024,
      switchLog: async () => {
        this.switches += 1;
        if (this.switchesAfter instanceof Error) throw this.switchesAfter;
        return this.switchesAfter;
      },
      clock,
      logger: this.logger,
      onFailure: () => {
        this.failures += 1;
      },
      onSwitchedOn: () => {
        this.switchedOn += 1;
      },
      ...more,
    });
    this.#made.push(archiver);
    return archiver;
  }

  /** Hands a finished segment over, as the archive_command does. */
  finish(number: number, content = `segment ${number}`): string {
    const name = seg(number);
    if (readdirSync(this.spool).includes(SWITCHED_OFF)) return name;
    writeFileSync(join(this.spool, `${name}.part`), content);
    renameSync(join(this.spool, `${name}.part`), join(this.spool, name));
    return name;
  }

  /** Numbers of the segments in the spool. */
  get spooled(): number[] {
    return numbersIn(this.spool);
  }

  /** Numbers of the segments in the archive. */
  get archived(): number[] {
    return numbersIn(this.walDir);
  }

  contentOf(number: number): string {
    return gunzipSync(readFileSync(join(this.walDir, `${seg(number)}.gz`))).toString('utf8');
  }

  warnings(text: string): number {
    return this.lines.filter(({ level, msg }) => level !== 'info' && msg.includes(text)).length;
  }

  async close(): Promise<void> {
    for (const archiver of this.#made.splice(0)) await archiver.stop(0);
  }
}

const numbersIn = (folder: string): number[] =>
  readdirSync(folder)
    .flatMap((name) => (/^[0-9A-F]{24}(\.gz)?$/.test(name) ? (parseSegment(name.slice(0, 24))?.number ?? []) : []))
    .sort((a, b) => a - b);
