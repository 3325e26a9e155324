// What a model asks to open, as the client takes it: first whether it may, then what it is.
import { checkTunnelSpec, localText, type TunnelSpec } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import type { OpenTunnelInput } from '@tunnel/mcp/tools';
import { Secret } from '@tunnel/runtime';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { type AllowedTarget, isTargetAllowed, parseAllowedTarget, plainHost } from './mcp-allow.rules.ts';

export interface WantedTunnel {
  readonly spec: TunnelSpec;
  /** A name that was not given can be another. */
  readonly isNamed: boolean;
}

/** Throws a Fault; nothing was dialled then, and nothing asked of the edge. */
export const wantedTunnel = (
  input: OpenTunnelInput,
  allow: readonly string[],
  { env }: Pick<Io, 'env'>,
): WantedTunnel => {
  const { local_host = '127.0.0.1', local_port: localPort } = input;
  const localHost = plainHost(local_host);
  const target = localText({ localHost, localPort });
  if (!isTargetAllowed(allowedTargets(allow), localHost, localPort)) {
    throw new Fault('MCP_TARGET_NOT_ALLOWED', { target, allowed: allow.join(', ') || 'nothing' });
  }
  const spec: TunnelSpec = {
    ...{ protocol: input.protocol, localHost, localPort },
    ...(input.name === undefined ? {} : { name: input.name }),
    ...(input.subdomain === undefined ? {} : { subdomain: input.subdomain }),
    ...(input.domain === undefined ? {} : { domain: input.domain }),
    ...(input.remote_port === undefined ? {} : { remotePort: input.remote_port }),
    ...(input.host_header === undefined ? {} : { hostHeader: input.host_header }),
    ...peerFields(input, env),
  };
  checkTunnelSpec(spec);
  return { spec, isNamed: (input.name ?? input.p2p_name) !== undefined };
};

/** Throws a Fault for the first that is none. */
export const allowedTargets = (texts: readonly string[]): AllowedTarget[] =>
  texts.map((text) => {
    const target = parseAllowedTarget(text);
    if (target !== null) return target;
    throw misuse(`'${text}' cannot be allowed. Use host:port, host:from-to or host:*, such as 127.0.0.1:3000.`);
  });

/** The secret comes from the server's own environment alone: a model neither knows it nor chooses it. */
const peerFields = (input: OpenTunnelInput, env: Io['env']): Partial<TunnelSpec> => {
  const { p2p_name: p2pName, p2p_service: service } = input;
  // Of another kind of tunnel the client says that they do not belong there.
  const given = { ...(p2pName === undefined ? {} : { p2pName }), ...(service === undefined ? {} : { service }) };
  if (input.protocol !== 'p2p') return given;
  const secret = env['TUNNEL_P2P_SECRET'] ?? '';
  if (secret === '') throw new Fault('MCP_P2P_SECRET_MISSING');
  return { ...given, secret: new Secret(secret) };
};
