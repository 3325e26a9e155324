// The one line a person reads when the embedded database cannot run here.
import { Fault } from '@tunnel/errors';

export const embeddedFault = (dir: string, reason: string, cause?: unknown): Fault =>
  new Fault('CONFIG_DATABASE_EMBEDDED', { dir, reason }, cause === undefined ? {} : { cause });
