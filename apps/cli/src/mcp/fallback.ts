// The fallback of a tool call from the edge to the platform, or the reverse, and the choice of the error to report if both fail.
import { Fault } from '@tunnel/errors';

/** Creates the error for an edge without a platform. */
export const noPlatform = (): Fault => new Fault('CLIENT_PLATFORM_UNREACHABLE', NO_PLATFORM);

const NO_PLATFORM = { url: 'the platform', reason: 'the edge has no platform' };

const UNREACHABLE: ReadonlySet<string> = new Set([
  ...['CLIENT_API_UNREACHABLE', 'CLIENT_NOT_AN_API', 'CLIENT_PLATFORM_UNREACHABLE', 'CLIENT_NOT_A_PLATFORM'],
]);

/**
 * Error codes of an older server, of a server with the API switched off, and of a remote edge that would receive the API key unencrypted.
 */
const NOT_THERE: ReadonlySet<string> = new Set(['API_NOT_FOUND', 'CLIENT_USAGE']);

/** Error codes of a connection that was never established, so that no request can have been sent. */
const NEVER_CONNECTED: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH']);

const isNoWay = ({ code, values }: Fault): boolean => code === 'CLIENT_USAGE' || values['url'] === NO_PLATFORM.url;

const isOutOfReach = ({ code }: Fault): boolean => UNREACHABLE.has(code) || NOT_THERE.has(code);

/** Returns true if the call certainly had no effect. If only the response was lost, the call may have been carried out. */
const isSurelyUndone = (fault: Fault): boolean =>
  NOT_THERE.has(fault.code) || isNoWay(fault) || NEVER_CONNECTED.has((fault.cause as NodeJS.ErrnoException)?.code);

/** Returns true if a failed call can be tried at the other side. `isOnce` means that the call must not be carried out twice. */
export const mayFallBack = (error: unknown, isOnce: boolean): boolean =>
  error instanceof Fault && isOutOfReach(error) && (!isOnce || isSurelyUndone(error));

/**
 * Chooses the error to report after both sides have failed. If both sides are out of reach, the first error is reported, because the
 * first side was the likelier one. The first error is skipped if the first side could not have been used at all.
 */
export const likelierError = (first: unknown, second: unknown): unknown =>
  second instanceof Fault && isOutOfReach(second) && !(first instanceof Fault && isNoWay(first)) ? first : second;
