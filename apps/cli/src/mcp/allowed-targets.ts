// What a model may open, as the owner of this machine has written it down.
import { type AllowedTarget, parseAllowedTarget } from '@tunnel/client';
import { Fault } from '@tunnel/errors';

/** Throws a Fault for the first that is none. */
export const allowedTargets = (texts: readonly string[]): AllowedTarget[] =>
  texts.map((text) => {
    const target = parseAllowedTarget(text);
    if (target !== null) return target;
    throw new Fault('CLIENT_USAGE', {
      reason: `'${text}' cannot be allowed. Use host:port, host:from-to or host:*, such as 127.0.0.1:3000.`,
    });
  });
