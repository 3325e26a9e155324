// What the platform's error mapper knows besides faults: a database that is away, and a body that is not JSON.
import { Fault } from '@tunnel/errors';
import { createErrorMapper, type ErrorMapper } from '@tunnel/http-shell';
import type { Logger } from '@tunnel/runtime';
import { HTTPException } from 'hono/http-exception';
import { isDatabaseAway } from '../db/database-away.ts';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';

export const platformErrorMapper = (logger: Logger): ErrorMapper =>
  createErrorMapper({
    logger,
    failed: 'a request failed',
    known: (error) => {
      if (isDatabaseAway(error)) return databaseAway(error);
      const isMediaType = error instanceof HTTPException && error.status === 415;
      return isMediaType ? new Fault('API_MEDIA_TYPE', {}, { cause: error }) : null;
    },
    // A database that is away is told of once, by whoever watches it, not by every request that meets it.
    isToldElsewhere: ({ code }) => code === 'DATABASE_AWAY',
  });

export const databaseAway = (cause?: unknown): Fault =>
  new Fault('DATABASE_AWAY', { seconds: PLATFORM_BOUNDS.DATABASE_RETRY_AFTER_SECS }, { cause });
