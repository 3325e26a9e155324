// The last moment of a session that ends on purpose.
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import type { ControlLink } from './control-link.ts';
import { CLIENT_LIMITS } from './limits.ts';

/** The edge must have read that we end on purpose, or it would hold our ports and names; but not for long. */
export const sayFarewell = async (link: ControlLink, clock: Clock): Promise<void> => {
  if (!link.isOpen) return;
  await new Promise<void>((resolve) => {
    const timer = clock.setTimeout(resolve, CLIENT_LIMITS.CLIENT_CLOSE_TIMEOUT_MS);
    const onEnd = (): void => {
      timer.cancel();
      resolve();
    };
    link.listen({ onMessage: () => {}, onEnd });
  });
  link.drop(new Fault('CLIENT_CLOSED'));
};
