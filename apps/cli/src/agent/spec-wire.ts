// Conversion of a tunnel between the command that adds the tunnel and the running client that opens the tunnel. The client accepts JSON
// with the keys of config.yml or with the names of the library. Commands send the names of the library, because after an upgrade the
// running client can still have the previous version.
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

/** A tunnel with a name. The name is known to the command that requests the tunnel, and is needed to remove the tunnel. */
export type NamedSpec = ClientSpec & { readonly name: string };

/**
 * Converts a tunnel to the JSON sent to a running client. The group key is included, because only the user's own programs can open the
 * socket. A policy is included in the form sent to the edge, without passwords, tokens, or file names that the client would look up from
 * another folder.
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

/** Converts received JSON to a tunnel. Throws a Fault if the JSON does not describe a valid tunnel. */
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
  // p2p tunnels have separate secrets and commands.
  if (proto === 'p2p') throw misuse('publish p2p tunnels with `tunnel p2p publish`');
  const spec = { proto, name, ...options } as NamedSpec;
  checkTunnelSpec(spec, nameOf);
  return spec;
};

const checkOption = (key: SpecKey, value: unknown, nameOf: (key: SpecKey) => string): void => {
  // A policy file name is rejected, because the running client would look up the file from its own folder.
  if (key === 'policy' && typeof value === 'string') throw misuse('`policy` must be a table, not a file');
  const parsed = optionOf(key).schema().safeParse(value);
  if (!parsed.success) {
    throw misuse(`\`${nameOf(key)}\` must be ${parsed.error.issues[0]?.message ?? 'another value'}`);
  }
};
