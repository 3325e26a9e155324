// Runs the jobs at their pace. One that fails is told of and comes again; one that takes long is not begun twice.
import type { Timer } from '@tunnel/runtime';
import { isDatabaseAway } from '../db/database-away.ts';
import { cleanUp } from './clean-up.ts';
import { closeLostEntries } from './close-lost-entries.ts';
import { enforceCaps } from './enforce-caps.ts';
import type { Job, JobContext } from './job.ts';

export const standardJobs = (settings: { readonly public_url: string }): readonly Job[] => [
  closeLostEntries,
  enforceCaps({ publicUrl: settings.public_url }),
  cleanUp,
];

export class Jobs {
  readonly #context: JobContext;
  readonly #jobs: readonly Job[];
  readonly #running = new Map<Job, Promise<void>>();
  readonly #timers = new Map<Job, Timer>();

  constructor(context: JobContext, jobs: readonly Job[]) {
    this.#context = context;
    this.#jobs = jobs;
  }

  start(): void {
    for (const job of this.#jobs) this.#plan(job, job.firstAfterMs ?? job.everyMs);
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await Promise.all(this.#running.values());
  }

  #plan(job: Job, inMs: number): void {
    const begin = (): void => {
      this.#plan(job, job.everyMs);
      if (!this.#running.has(job)) this.#begin(job);
    };
    this.#timers.set(job, this.#context.clock.setTimeout(begin, inMs));
  }

  #begin(job: Job): void {
    const run = job
      .run(this.#context)
      .catch((error: unknown) => this.#failed(job, error))
      .finally(() => this.#running.delete(job));
    this.#running.set(job, run);
  }

  #failed(job: Job, error: unknown): void {
    const { logger } = this.#context;
    // Whoever watches the database tells of that.
    if (isDatabaseAway(error)) logger.debug({ job: job.name }, 'a job waits for the database');
    else logger.error({ job: job.name, err: error }, 'a job failed');
  }
}
