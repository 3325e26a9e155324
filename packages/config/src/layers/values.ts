// The kinds of values a config key can have. Each says in words what it expects: those words end in the refusal.

import { isIP } from 'node:net';
import { isLoopbackHost } from '@tunnel/rules/net';
import { Secret } from '@tunnel/runtime';
import * as z from 'zod';

/** What the walkers over a schema read from it. */
export interface KeyMeta {
  /** The value never appears in a refusal. */
  readonly concealed?: boolean;
}

const keyMetas = new WeakMap<z.core.$ZodType, KeyMeta>();

export const keyMetaOf = (schema: z.core.$ZodType): KeyMeta | undefined => keyMetas.get(schema);

const withMeta = <S extends z.ZodType>(schema: S, meta: KeyMeta): S => {
  keyMetas.set(schema, meta);
  return schema;
};

/** A table whose keys are all known. */
export const table = <S extends z.ZodRawShape>(shape: S) => z.strictObject(shape, { error: 'a table' });

/** A table that may be left out: its keys then have their defaults. */
export const section = <S extends z.ZodRawShape>(shape: S) => table(shape).prefault({} as never);

export const text = () => z.string({ error: 'a string' });

export const filledText = (expected = 'a string that is not empty') =>
  z.string({ error: expected }).refine((value) => value.trim() !== '', { error: expected });

export const printableName = (expected = '1 to 100 printable characters') =>
  z.string({ error: expected }).regex(/^[^\p{Cc}\p{Cs}]{1,100}$/u, { error: expected });

export const flag = () => z.boolean({ error: 'true or false' });

export const wholeNumber = (from: number, to: number) => {
  const error = `a whole number from ${from} to ${to}`;
  return z.int({ error }).min(from, { error }).max(to, { error });
};

export const seconds = (to: number) => {
  const error = `a number of seconds above 0, at most ${to}`;
  return z.number({ error }).positive({ error }).max(to, { error });
};

/** A part of a whole. */
export const share = (from: number) => {
  const error = `a number from ${from} to 1`;
  return z.number({ error }).min(from, { error }).max(1, { error });
};

/** Port 0 stands for any free port. */
export const listenPort = () => wholeNumber(0, 65_535);

export const targetPort = () => wholeNumber(1, 65_535);

export const portRange = () => {
  const error = 'two ports [from, to], the lower one first';
  const end = wholeNumber(1, 65_535);
  return z.tuple([end, end], { error }).refine(([from, to]) => from <= to, { error });
};

/** 0 stands for any free port, so two of them are not the same. */
export const twoPortsOrNone = () => {
  const error = 'two different ports (0: any free one), or an empty list';
  return z
    .array(listenPort(), { error })
    .refine((ports) => ports.length === 0 || (ports.length === 2 && (ports[0] !== ports[1] || ports[0] === 0)), {
      error,
    });
};

export const oneOf = <const T extends readonly (string | boolean)[]>(values: T) => {
  const error = `one of ${values.map((value) => JSON.stringify(value)).join(', ')}`;
  return z.literal(values, { error });
};

interface UrlOptions {
  readonly orEmpty: boolean;
  readonly concealed?: boolean;
  readonly maxCharacters?: number;
}

export const url = (options: UrlOptions) => {
  const { maxCharacters = Number.POSITIVE_INFINITY } = options;
  const bound = Number.isFinite(maxCharacters) ? ` of at most ${maxCharacters} characters` : '';
  const error = `an http or https URL${bound}${options.orEmpty ? ', or an empty string' : ''}`;
  const schema = z
    .string({ error })
    .max(maxCharacters, { error })
    .refine((value) => (options.orEmpty && value === '') || isHttpUrl(value), { error });
  return options.concealed === true ? withMeta(schema, { concealed: true }) : schema;
};

const isHttpUrl = (value: string): boolean => /^https?:\/\//i.test(value) && URL.canParse(value);

/** Of a service that is sent a secret, so never in clear over a network. */
export const serviceUrl = () => {
  const error = 'an https URL of a host alone (http only on this machine)';
  return z.string({ error }).refine((value) => isHttpUrl(value) && isServiceUrl(new URL(value)), { error });
};

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

/** A file, or what such a file would say: read and judged by whoever knows what a policy is. */
export const policyValue = () => {
  const error = 'a file, a list of rules, or a table of `login` and `rules`';
  const isOne = (value: unknown): boolean =>
    typeof value === 'string' ? value.trim() !== '' : typeof value === 'object' && value !== null;
  return withMeta(z.unknown().refine(isOne, { error }), { concealed: true });
};

const HOST_AND_PORT = /^(?:(?:\[[0-9a-f:.%]+\]|[^\s:/?#@[\]]+):)?(\d{1,5})$/i;

/** Of another local service. */
export const portOrAddress = () => {
  const error = 'a port, or "host:port"';
  return z.union([z.int(), z.string()], { error }).refine(
    (value) => {
      const port = Number(typeof value === 'number' ? value : HOST_AND_PORT.exec(value)?.[1]);
      return port >= 1 && port <= 65_535;
    },
    { error },
  );
};

/** A secret text; in the finished config it is a `Secret`. */
export const secretText = () =>
  withMeta(z.string({ error: 'a string' }), { concealed: true }).transform((value) => new Secret(value));

/** With a password in it; empty: there is none. */
export const secretUrl = (begins: RegExp, example: string) =>
  withMeta(
    z
      .string({ error: 'a string' })
      .refine((value) => value === '' || begins.test(value), { error: `empty or a URL such as ${example}` }),
    { concealed: true },
  ).transform((value) => new Secret(value));

export const filledSecretText = () => {
  const error = 'a string that is not empty';
  return withMeta(z.string({ error }).min(1, { error }), { concealed: true }).transform((value) => new Secret(value));
};

// A finished config never changes: frozen all the way down, in the types and at run time.

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
