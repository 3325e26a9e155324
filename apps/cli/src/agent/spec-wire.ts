// A tunnel to be added, on its way from the command that asks for it to the client that opens it. The client takes JSON by the keys of config.yml, and by the names
// of the library. The command sends the names of the library, because after an upgrade the client may still be one of the version before.
import { type ClientSpec, checkTunnelSpec, policyToSend } from '@tunnel/client';
import {
  type LibraryTunnel,
  libraryNameOf,
  libraryTunnelOf,
  optionOf,
  SPEC_KEYS,
  type SpecKey,
  specOfLibrary,
} from '@tunnel/tunnel-spec';
import { misuse } from '../io/problem-report.ts';

/** A tunnel with a name. The command that asks for it knows the name, and the tunnel is removed by it. */
export type NamedSpec = ClientSpec & { readonly name: string };

/**
 * The key of a group goes along, because only the user's own programs can open the socket. A policy goes as the edge would be sent it: no password, no
 * token, and no file that would be looked for from another folder.
 */
export const specToWire = async (spec: NamedSpec): Promise<object> => {
  const { group_key } = spec;
  const policy = await policyToSend(spec);
  return libraryTunnelOf({
    ...spec,
    ...(typeof group_key === 'object' ? { group_key: group_key.reveal() } : {}),
    ...(policy === null ? {} : { policy }),
  } as NamedSpec);
};

/** Throws a Fault for JSON that is no tunnel. */
export const specFromWire = (json: unknown): NamedSpec => {
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw misuse('the tunnel must be a JSON object');
  const nameOf = 'proto' in json ? (key: SpecKey): string => key : libraryNameOf;
  const known = new Set(['proto' in json ? 'proto' : 'protocol', 'name', ...SPEC_KEYS.map(nameOf)]);
  const foreign = Object.keys(json).find((key) => !known.has(key));
  if (foreign !== undefined) throw misuse(`unknown key \`${foreign}\` for a tunnel`);
  const { proto, name, ...options } = 'proto' in json ? (json as NamedSpec) : specOfLibrary(json as LibraryTunnel);
  for (const [key, value] of Object.entries(options)) checkOption(key as SpecKey, value, nameOf);
  if (typeof name !== 'string' || name === '') throw misuse('the tunnel needs a `name`');
  // p2p has secrets of its own, and commands of its own.
  if (proto === 'p2p') throw misuse('publish p2p tunnels with `tunnel p2p publish`');
  const spec = { proto, name, ...options } as NamedSpec;
  checkTunnelSpec(spec, nameOf);
  return spec;
};

const checkOption = (key: SpecKey, value: unknown, nameOf: (key: SpecKey) => string): void => {
  // A file would be looked for from the folder of the running client.
  if (key === 'policy' && typeof value === 'string') throw misuse('`policy` must be a table, not a file');
  const parsed = optionOf(key).schema.safeParse(value);
  if (!parsed.success) {
    throw misuse(`\`${nameOf(key)}\` must be ${parsed.error.issues[0]?.message ?? 'another value'}`);
  }
};
