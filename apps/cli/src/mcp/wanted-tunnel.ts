// Conversion of a tunnel requested by a model to a spec for the client, after a check that the model may publish the target.
import { type ClientSpec, checkTunnelSpec, localText } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import type { OpenTunnelInput } from '@tunnel/mcp/tools';
import { Secret } from '@tunnel/runtime';
import { SPEC_KEYS, type SpecKey } from '@tunnel/tunnel-spec';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { type AllowedTarget, isTargetAllowed, parseAllowedTarget, plainHost } from './mcp-allow.rules.ts';

export interface WantedTunnel {
  readonly spec: ClientSpec;
  /** True if the model has named the tunnel. A default name can be replaced by another name. */
  readonly isNamed: boolean;
}

/** Checks and converts the tunnel. Throws a Fault before any connection to the target, and before any request to the edge. */
export const wantedTunnel = (
  input: OpenTunnelInput,
  allow: readonly string[],
  { env }: Pick<Io, 'env'>,
): WantedTunnel => {
  const { protocol: proto, local_port, name, p2p_name } = input;
  const local_host = plainHost(input.local_host ?? '127.0.0.1');
  if (!isTargetAllowed(allowedTargets(allow), local_host, local_port)) {
    const target = localText({ local_host, local_port });
    throw new Fault('MCP_TARGET_NOT_ALLOWED', { target, allowed: allow.join(', ') || 'nothing' });
  }
  const secret = proto === 'p2p' ? { p2p_secret: secretOf(env) } : {};
  // The tool has the keys of config.yml, except for the name of a p2p tunnel.
  const options: Partial<Record<SpecKey, unknown>> = { ...input, local_host, p2p_publish: p2p_name, ...secret };
  const given = SPEC_KEYS.filter((key) => options[key] !== undefined).map((key) => [key, options[key]]);
  const named = name === undefined ? {} : { name };
  const spec = { proto, ...named, ...Object.fromEntries(given) } as ClientSpec;
  checkTunnelSpec(spec);
  return { spec, isNamed: (input.name ?? input.p2p_name) !== undefined };
};

/** Parses allowed targets. Throws a Fault for the first invalid target. */
export const allowedTargets = (texts: readonly string[]): AllowedTarget[] =>
  texts.map((text) => {
    const target = parseAllowedTarget(text);
    if (target !== null) return target;
    throw misuse(`'${text}' is not a valid target. Use host:port, host:from-to or host:*, such as 127.0.0.1:3000.`);
  });

/** Returns the p2p secret, which comes only from the environment of the MCP server. A model neither knows nor chooses the secret. */
const secretOf = (env: Io['env']): Secret => {
  const secret = env['TUNNEL_P2P_SECRET'] ?? '';
  if (secret === '') throw new Fault('MCP_P2P_SECRET_MISSING');
  return new Secret(secret);
};
