// Option names of the client library: the keys of config.yml in camel case, and a few renamed keys.
import type { Proto } from './option.ts';
import { type OptionValue, optionOf, SPEC_KEYS, type SpecKey, type TunnelSpec } from './tunnel-spec.ts';

/**
 * Options renamed in the client library. A library call either publishes or connects, so `p2p_publish` and `p2p_connect` share the name
 * `p2pName`.
 */
const RENAMED = {
  p2p_publish: 'p2pName',
  p2p_connect: 'p2pName',
  p2p_secret: 'secret',
  p2p_service: 'service',
  p2p_allow: 'allow',
  p2p_direct: 'direct',
} as const;

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;

type LibraryName<K extends SpecKey> = K extends keyof typeof RENAMED ? (typeof RENAMED)[K] : Camel<K>;

type CamelKeys<T> = { readonly [F in keyof T & string as Camel<F>]?: T[F] | undefined };

type LibraryValue<K extends SpecKey> = K extends 'health_check' ? CamelKeys<OptionValue<K>> : OptionValue<K>;

/** Keys of the connecting end of a p2p tunnel. A published tunnel has no such options. */
type ConnectKey = 'p2p_connect' | 'listen_port' | 'listen_host';

type Named<K extends SpecKey> = { readonly [N in K as LibraryName<N>]?: LibraryValue<N> | undefined };

/** A published tunnel with the option names of the client library. */
export type LibraryTunnel = { readonly protocol: Proto; readonly name?: string | undefined } & Named<
  Exclude<SpecKey, ConnectKey>
>;

const camelOf = (key: string): string => key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

export const libraryNameOf = (key: SpecKey): string =>
  (RENAMED as Partial<Record<SpecKey, string>>)[key] ?? camelOf(key);

const LIBRARY_KEYS = SPEC_KEYS.filter((key) => key !== 'p2p_connect');

type Table = Readonly<Record<string, unknown>>;

const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Converts the keys of a nested table between config.yml and library spelling. The keys of `services` are names chosen by the tunnel's
 * owner and stay unchanged.
 */
const respelled = (
  key: SpecKey,
  value: unknown,
  spell: (field: string) => readonly [from: string, to: string],
): unknown => {
  const fields = Object.keys(optionOf(key).fields ?? {});
  if (!isTable(value) || optionOf(key).flag !== undefined) return value;
  const pairs = fields.map(spell).filter(([from]) => value[from] !== undefined);
  return fields.length === 0 ? value : Object.fromEntries(pairs.map(([from, to]) => [to, value[from]]));
};

/** Converts the options of a library call to the keys of config.yml. Values are not checked. */
const optionsOfLibrary = (given: object): Table =>
  Object.fromEntries(
    LIBRARY_KEYS.flatMap((key) => {
      const value = (given as Table)[libraryNameOf(key)];
      return value === undefined ? [] : [[key, respelled(key, value, (field) => [camelOf(field), field])]];
    }),
  );

export const specOfLibrary = (tunnel: LibraryTunnel): TunnelSpec & { readonly name?: string } => {
  const { protocol: proto, name } = tunnel;
  const { local_tls_verify, ...options } = optionsOfLibrary(tunnel);
  return {
    proto,
    ...(name === undefined ? {} : { name }),
    ...options,
    // A local service with plain http has no certificate to verify, so the key is dropped. Programs can then pass `localTlsVerify` for
    // http and https alike.
    ...(local_tls_verify === undefined || proto === 'http' ? {} : { local_tls_verify }),
  } as TunnelSpec;
};

export const libraryTunnelOf = ({
  proto,
  ...spec
}: TunnelSpec & { readonly name?: string | undefined }): LibraryTunnel => {
  const { name, ...options } = spec as Table;
  const renamed = SPEC_KEYS.filter((key) => options[key] !== undefined).map((key) => [
    libraryNameOf(key),
    respelled(key, options[key], (field) => [field, camelOf(field)]),
  ]);
  return { protocol: proto, ...(name === undefined ? {} : { name }), ...Object.fromEntries(renamed) } as LibraryTunnel;
};
