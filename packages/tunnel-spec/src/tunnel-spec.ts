// The type of a tunnel's options: a union on `proto` with the keys of config.yml. config.yml, the agent's JSON, reloads and the client's
// registry all use this type; adapters convert to the wire format and to the library's names.
import { TUNNEL_PROTOCOLS } from '@tunnel/rules/tunnels';
import type * as z from 'zod';
import type { Option, Proto } from './option.ts';
import { OPTIONS } from './options.ts';
import { oneOf } from './values.ts';

type Options = typeof OPTIONS;

export type OptionKey = keyof Options;

/** Keys that name the file or environment variable of a secret. A spec holds the secret itself. */
type SourceKey = { [K in OptionKey]: Options[K] extends { readonly sourceOf: string } ? K : never }[OptionKey];

export type SpecKey = Exclude<OptionKey, SourceKey>;

/** A secret hidden from logs, errors and inspection. */
export interface ConcealedText {
  reveal(): string;
}

/** Type of an option's value in a tunnel's spec. */
export type OptionValue<K extends OptionKey> = Options[K] extends { readonly isSecret: true }
  ? ConcealedText | string
  : Exclude<z.input<ReturnType<Options[K]['schema']>>, undefined>;

type Has<P extends Proto, K extends OptionKey> = P extends Options[K]['protos'][number] ? true : false;

/** The options of one protocol. Keys of other protocols are undefined, so that code can read every key of every tunnel. */
type SpecOf<P extends Proto> = { readonly proto: P } & {
  readonly [K in SpecKey]?: (Has<P, K> extends true ? OptionValue<K> : undefined) | undefined;
};

/** The options of a tunnel. An absent option has its default. */
export type TunnelSpec = { [P in Proto]: SpecOf<P> }[Proto];

/** Tunnel protocols in the order used by error messages. */
export const PROTOS = Object.keys(TUNNEL_PROTOCOLS) as Proto[];

export const OPTION_KEYS = Object.keys(OPTIONS) as OptionKey[];

export const optionOf = (key: OptionKey): Option => OPTIONS[key];

const isSpecKey = (key: OptionKey): key is SpecKey => optionOf(key).sourceOf === undefined;

export const SPEC_KEYS = OPTION_KEYS.filter(isSpecKey);

type SecretKey = { [K in OptionKey]: Options[K] extends { readonly isSecret: true } ? K : never }[OptionKey];

/** Keys of secrets. For each secret, config.yml has two more keys, `_env` and `_file`, for a variable or a file with the secret. */
export const SECRET_KEYS = OPTION_KEYS.filter((key): key is SecretKey => optionOf(key).isSecret === true);

export const hasOption = (proto: Proto, key: OptionKey): boolean => optionOf(key).protos.includes(proto);

type KeySchemas<S extends z.ZodType> = {
  [K in OptionKey]: Options[K] extends { readonly isSecret: true }
    ? z.ZodOptional<S>
    : ReturnType<Options[K]['schema']>;
};

/**
 * Returns the schemas for the keys of a config.yml entry, in the order used by error messages. `secret` is the schema of secrets in
 * config.yml.
 */
export const entryShape = <S extends z.ZodType>(secret: S) => ({
  proto: oneOf(['http', 'https', 'tcp', 'tls', 'udp', 'p2p']),
  ...(Object.fromEntries(
    OPTION_KEYS.map((key) => [key, optionOf(key).isSecret === true ? secret.optional() : OPTIONS[key].schema()]),
  ) as KeySchemas<S>),
});

/** Returns the default of an option, or undefined if the option has no default. */
export const defaultOf = (key: OptionKey): unknown => {
  const parsed = optionOf(key).schema().safeParse(undefined);
  return parsed.success ? parsed.data : undefined;
};

/**
 * Converts a validated config entry to a spec with the keys of its protocol that are set. A host without a port is dropped, because it is
 * only the default.
 */
export const specOfEntry = (
  entry: { readonly proto: Proto } & Readonly<Partial<Record<OptionKey, unknown>>>,
): TunnelSpec => {
  const keys = SPEC_KEYS.filter(
    (key) =>
      entry[key] !== undefined &&
      hasOption(entry.proto, key) &&
      (key !== 'local_host' || entry.local_port !== undefined),
  );
  return { proto: entry.proto, ...Object.fromEntries(keys.map((key) => [key, entry[key]])) } as TunnelSpec;
};
