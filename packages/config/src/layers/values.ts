// Kinds of config values used only in server.toml or at the top level of config.yml; the package tunnel-spec has the kinds for tunnels.
// Every kind describes the expected value in words, which end the error message.

import { isIP } from 'node:net';
import { isLoopbackHost } from '@tunnel/rules/net';
import { Secret } from '@tunnel/runtime';
import { conceal, filledSecret, isHttpUrl, listenPort, table, wholeNumber } from '@tunnel/tunnel-spec/values';
import * as z from 'zod';

/** An optional table. If the table is missing, its keys have their defaults. */
export const section = <S extends z.ZodRawShape>(shape: S) => table(shape).prefault({} as never);

export const text = () => z.string({ error: 'a string' });

export const printableName = (expected = '1 to 100 printable characters') =>
  z.string({ error: expected }).regex(/^[^\p{Cc}\p{Cs}]{1,100}$/u, { error: expected });

/** Schema of a fraction from `from` to 1. */
export const share = (from: number) => {
  const error = `a number from ${from} to 1`;
  return z.number({ error }).min(from, { error }).max(1, { error });
};

export const portRange = () => {
  const error = 'two ports [from, to], the lower one first';
  const end = wholeNumber(1, 65_535);
  return z.tuple([end, end], { error }).refine(([from, to]) => from <= to, { error });
};

/** A list of two different ports, or an empty list. Port 0 means any free port, so two zeros count as different ports. */
export const twoPortsOrNone = () => {
  const error = 'two different ports (0 means any free port), or an empty list';
  return z
    .array(listenPort(), { error })
    .refine((ports) => ports.length === 0 || (ports.length === 2 && (ports[0] !== ports[1] || ports[0] === 0)), {
      error,
    });
};

/**
 * URL of an external service that receives a secret. Plain http is allowed only for a loopback host, so that the secret is never sent
 * unencrypted over a network.
 */
export const serviceUrl = () => {
  const error = 'an https URL with only a host (http only for this machine)';
  return z.string({ error }).refine((value) => isHttpUrl(value) && isServiceUrl(new URL(value)), { error });
};

/**
 * URL that appears in commands for people to paste, so it has no character with a meaning for a shell. Other paths are appended, so it has no
 * query.
 */
export const plainUrl = () => {
  const error = 'an http or https URL of letters, digits and . _ ~ % + - /, without a user name or a query';
  return z.string({ error }).refine((value) => isHttpUrl(value) && PLAIN_URL.test(value), { error });
};

/**
 * URL of a service to which a path is appended, so it has no query. A user name is not accepted either, because a URL is not secret. An
 * empty string means no URL.
 */
export const baseUrlOrNone = () => {
  const error = 'an http or https URL without a user name or a query, or an empty string';
  return z.string({ error }).refine((value) => value === '' || (isHttpUrl(value) && isBase(new URL(value))), { error });
};

const isBase = ({ href, origin, pathname }: URL): boolean => href === `${origin}${pathname}`;

const PLAIN_URL = /^https?:\/\/[\p{L}\p{N}._:[\]-]+(?:\/[\p{L}\p{N}._~%+/-]*)?$/iu;

const isServiceUrl = ({ protocol, hostname, href, origin }: URL): boolean =>
  href === `${origin}/` && (protocol === 'https:' || isLoopbackHost(hostname));

export const addressList = () => {
  const error = 'an IP address or a network such as "10.0.0.0/8"';
  return z.array(z.string({ error }).refine(isAddressOrNetwork, { error }), {
    error: 'a list of IP addresses and networks',
  });
};

const isAddressOrNetwork = (value: string): boolean => {
  const [address = '', bits, ...rest] = value.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
};

/** Schema of a secret string, which becomes a `Secret` in the loaded config. `expected` describes the values that `isValid` accepts. */
export const secretText = (expected = 'a string', isValid: (value: string) => boolean = () => true) =>
  conceal(z.string({ error: expected }).refine(isValid, { error: expected })).transform((value) => new Secret(value));

/** A URL that may contain a password, so it becomes a `Secret`. An empty string means no URL. */
export const secretUrl = (begins: RegExp, example: string, isValid: (value: string) => boolean = () => true) =>
  conceal(
    z.string({ error: 'a string' }).refine((value) => value === '' || (begins.test(value) && isValid(value)), {
      error: `empty or a URL such as ${example}`,
    }),
  ).transform((value) => new Secret(value));

/**
 * Checks that a URL with a password names the intended host. An unescaped `/`, `?` or `#` in a password ends the host, so that the user
 * would be taken for the host and the first half of the password for the port.
 */
export const hasIntendedHost = (value: string): boolean => {
  if (/\p{Cc}/u.test(value) || !URL.canParse(value)) return false;
  const { hostname, pathname, search, hash } = new URL(value);
  return hostname !== '' && !`${pathname}${search}${hash}`.includes('@');
};

export const filledSecretText = () => filledSecret().transform((value) => new Secret(value));

// A loaded config never changes: it is deeply frozen, in the types and at run time.

export type DeepReadonly<T> = T extends Secret
  ? T
  : T extends readonly unknown[] | object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

export const deepFreeze = <T>(value: T): DeepReadonly<T> => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value as DeepReadonly<T>;
};
