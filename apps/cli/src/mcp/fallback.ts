// When a tool that one of edge and platform could not answer is taken to the other, and which of two failures is told.
import { Fault } from '@tunnel/errors';

/** Of an edge that belongs to none. */
export const noPlatform = (): Fault => new Fault('CLIENT_PLATFORM_UNREACHABLE', NO_PLATFORM);

const NO_PLATFORM = { url: 'the platform', reason: 'the edge does not report one' };

const UNREACHABLE: ReadonlySet<string> = new Set([
  ...['CLIENT_API_UNREACHABLE', 'CLIENT_NOT_AN_API', 'CLIENT_PLATFORM_UNREACHABLE', 'CLIENT_NOT_A_PLATFORM'],
]);

/** A server of before, or one that has switched it off; an edge elsewhere, to which the key would go in clear. */
const NOT_THERE: ReadonlySet<string> = new Set(['API_NOT_FOUND', 'CLIENT_USAGE']);

/** Of a connection that was never there: nothing can have been said on it. */
const NEVER_CONNECTED: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH']);

const isNoWay = ({ code, values }: Fault): boolean => code === 'CLIENT_USAGE' || values['url'] === NO_PLATFORM.url;

const isOutOfReach = ({ code }: Fault): boolean => UNREACHABLE.has(code) || NOT_THERE.has(code);

/** Where an answer was lost on its way, what was asked for may have happened. */
const isSurelyUndone = (fault: Fault): boolean =>
  NOT_THERE.has(fault.code) || isNoWay(fault) || NEVER_CONNECTED.has((fault.cause as NodeJS.ErrnoException)?.code);

/** `isOnce`: what is asked for must not happen twice. */
export const mayFallBack = (error: unknown, isOnce: boolean): boolean =>
  error instanceof Fault && isOutOfReach(error) && (!isOnce || isSurelyUndone(error));

/** Of two that are out of reach the first was the likelier one, unless nobody could have gone that way at all. */
export const likelierError = (first: unknown, second: unknown): unknown =>
  second instanceof Fault && isOutOfReach(second) && !(first instanceof Fault && isNoWay(first)) ? first : second;
