// A command that cannot be run as it was typed: exit code 2.
import { Fault } from '@tunnel/errors';

/** `reason`: a sentence that begins with a small letter, because it is printed behind `tunnel: `. */
export const misuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });
