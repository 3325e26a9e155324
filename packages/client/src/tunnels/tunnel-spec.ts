// Tunnel options: the owner's settings, their validation, and the registration sent to the edge.
import { resolve } from 'node:path';
import { Fault } from '@tunnel/errors';
import { isHostHeader } from '@tunnel/http1';
import {
  type ControlMessageInput,
  decodeControl,
  encodeControl,
  type HealthCheckSpec,
  healthCheckSpec,
  tunnelProtocol,
} from '@tunnel/protocol';
import { Secret, sha256Hex } from '@tunnel/runtime';
import {
  defaultOf,
  type EntryFields,
  entryFields,
  hasOption,
  type LibraryTunnel,
  libraryNameOf,
  type OptionValue,
  refuseGroupFields,
  refuseGroupsOf,
  SPEC_KEYS,
  type SpecKey,
  specOfLibrary,
  type TunnelSpec,
} from '@tunnel/tunnel-spec';
import { checkLocalSpec, isPort, localAuthority, localText } from '../local/local-target.ts';
import { checkServices, serviceTexts } from '../local/service-targets.ts';
import { type PolicyAbout, type PolicyInput, policyFrom, type TunnelPolicy } from '../policy/tunnel-policy.ts';
import { type Assignment } from '../state/resume-state.ts';
import { kindOf } from './kinds/kinds.ts';
import { asciiDomain } from './kinds/own-domain.ts';
import { checkP2pName, p2pSecretHash, resolveP2pSecret } from './kinds/p2p-secret.ts';

interface ClientKeys {
  /** Display name. Default: `<protocol>-<port>`, or a name derived from the socket or the folder. */
  readonly name?: string | undefined;
  /**
   * A policy file, a list of rules, or `{ login, rules }` (docs/policy.md). Passwords are sent to the edge as scrypt hashes, tokens as
   * SHA-256 hashes.
   */
  readonly policy?: PolicyInput | undefined;
}

/** Tunnel options with the keys of config.yml. */
export type ClientSpec = TunnelSpec & ClientKeys;

/** Tunnel options with the library's names. */
export type TunnelOptions = Omit<LibraryTunnel, 'policy'> & ClientKeys;

export type HealthCheck = NonNullable<TunnelOptions['healthCheck']>;

/** Converts tunnel options to the keys of config.yml. Values are not checked. */
export const specOfTunnel = (given: TunnelOptions | ClientSpec): ClientSpec =>
  'proto' in given ? given : (specOfLibrary(given as LibraryTunnel) as ClientSpec);

/** Converts and checks tunnel options in either spelling, and conceals secrets. Throws a Fault for invalid options. */
export const acceptTunnel = (given: TunnelOptions | ClientSpec): ClientSpec => {
  const spec = concealSecrets(specOfTunnel(given));
  checkTunnelSpec(spec, 'proto' in given ? undefined : libraryNameOf);
  return spec;
};

/** Maximum length of a name in a frame. The edge may have a lower limit. */
const NAME_FRAME_UNITS = 200;

type Registration = Extract<ControlMessageInput, { type: 'RegisterTunnel' }>;
type RegistrationFields = Omit<Registration, 'type' | 'request_id' | 'name' | 'protocol' | 'local_addr'>;

/** Throws a Fault for invalid options. The edge would reject a control frame with such options as a whole, without naming the tunnel. */
export const checkTunnelSpec = (spec: ClientSpec, nameOf: (key: SpecKey) => string = (key) => key): void => {
  const { host_header: hostHeader, subdomain, proto, local_protocol: localProtocol } = spec;
  checkAddresses(spec);
  checkKeys(spec, nameOf);
  if (localProtocol === 'h2c' && !kindOf(proto).takesH2c) {
    throw new Fault('CLIENT_USAGE', { reason: 'h2c is HTTP/2 without TLS: use it with http, not https' });
  }
  checkFilesSpec(spec);
  if (hostHeader !== undefined && !isHostHeader(hostHeader)) {
    throw new Fault('CLIENT_USAGE', {
      reason: 'the Host header must be keep, rewrite or a host name with an optional port',
    });
  }
  if (subdomain !== undefined && subdomain.length > 300) {
    throw new Fault('CLIENT_USAGE', { reason: 'the subdomain is longer than 63 characters' });
  }
  checkHost(spec);
  checkGroupSpec(spec);
  checkGuard(spec);
  if (proto === 'p2p') {
    checkP2pName(spec.p2p_publish);
    resolveP2pSecret(spec.p2p_secret);
  }
  checkFrame(spec);
};

/** Checks the requested host. The edge applies the same rules, but reports errors later. */
const checkHost = ({ proto, subdomain, domain, group }: ClientSpec): void => {
  if (subdomain !== undefined && domain !== undefined) {
    throw new Fault('CLIENT_USAGE', { reason: 'a tunnel has a domain or a subdomain, not both' });
  }
  // A tunnel in a group needs no subdomain, because it uses the group's name as its subdomain.
  if (proto === 'tls' && subdomain === undefined && domain === undefined && group === undefined) {
    throw new Fault('CLIENT_USAGE', { reason: 'a tls tunnel needs a domain or a subdomain' });
  }
};

/** Returns the facts about a tunnel that are needed to check its policy. */
export const policyAbout = ({ proto, services = {} }: ClientSpec): PolicyAbout => ({
  protocol: proto,
  services: serviceNames(services),
});

/** Returns the service names sorted, because they are part of the hash returned by the edge. */
const serviceNames = (services: OptionValue<'services'>): string[] => Object.keys(services).sort();

const checkGuard = (spec: ClientSpec): void => {
  const { policy, policy_revision: policyRevision, services } = spec;
  if (services !== undefined) checkServices(services);
  if (policyRevision !== undefined && !(Number.isSafeInteger(policyRevision) && policyRevision >= 0)) {
    throw new Fault('CLIENT_USAGE', { reason: 'the policy revision must be a whole number, 0 or more' });
  }
  if (policy !== undefined) policyFrom(policy).check(policyAbout(spec));
};

/** Returns the policy of a spec with concealed secrets, or null. The policy's files are read only once. */
export const policyOf = ({ policy }: ClientSpec): TunnelPolicy | null =>
  policy === undefined ? null : policyFrom(policy);

export const groupKeyOf = ({ group, group_key }: ClientSpec): Secret | null =>
  group === undefined || group_key === undefined ? null : concealed(group_key);

const concealed = (text: OptionValue<'group_key'>): Secret =>
  text instanceof Secret ? text : new Secret(textOf(text));

/** Rejects options that need a local service. The client serves a folder itself, so there is nothing to probe and no HTTP/2. */
const checkFilesSpec = ({ files, health_check: healthCheck, local_protocol: localProtocol }: ClientSpec): void => {
  if (files === undefined) return;
  if (healthCheck !== undefined) throw new Fault('CLIENT_USAGE', { reason: 'a folder of files takes no health check' });
  if (localProtocol === 'h2c') throw new Fault('CLIENT_USAGE', { reason: 'h2c needs a local service, not files' });
};

/** Options that have their own error messages for unsupported protocols, or that the client ignores there. */
const JUDGED_ELSEWHERE: readonly SpecKey[] = [
  ...(['group', 'group_key', 'health_check', 'policy', 'policy_revision'] as const),
  'allow_control_socket',
];

/** Rejects options that do not apply to the tunnel's protocol, since they were probably meant for another tunnel. */
const checkKeys = (spec: ClientSpec, nameOf: (key: SpecKey) => string): void => {
  const { proto, idle_secs: idleSecs, proxy_protocol: proxyProtocol } = spec;
  const refuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });
  const foreign = SPEC_KEYS.find(
    (key) => spec[key] !== undefined && !hasOption(proto, key) && !JUDGED_ELSEWHERE.includes(key),
  );
  if (foreign !== undefined) throw refuse(`\`${nameOf(foreign)}\` is not an option of a ${proto} tunnel`);
  if (idleSecs !== undefined && !(Number.isInteger(idleSecs) && idleSecs >= 5 && idleSecs <= 3600)) {
    throw refuse('the idle time must be a whole number of seconds from 5 to 3600');
  }
  if (proxyProtocol !== undefined && proxyProtocol !== 'v1' && proxyProtocol !== 'v2') {
    throw refuse('the PROXY protocol must be v1 or v2');
  }
  if (proto === 'udp' && proxyProtocol === 'v1') throw refuse('udp tunnels support only PROXY protocol v2');
};

/**
 * Encodes and decodes a registration, to reject values without a specific check above. Otherwise the edge would drop the frame without a
 * response.
 */
const checkFrame = (spec: ClientSpec): void => {
  const { proto: protocol, name = '' } = spec;
  const read = decodeControl(
    encodeControl({ type: 'RegisterTunnel', request_id: 'r', name, protocol, ...registrationFields(spec, {}) }),
  );
  if (!read.ok) throw new Fault('CLIENT_USAGE', { reason: read.fault.message });
};

/** Checks protocol, name and addresses, because library users may lack a type checker. */
const checkAddresses = (spec: ClientSpec): void => {
  const { proto, name = '', remote_port: remotePort } = spec;
  const refuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });
  if (!tunnelProtocol.safeParse(proto).success)
    throw refuse(`the protocol of a tunnel must be ${tunnelProtocol.options.join(', ')}`);
  checkLocalSpec(spec);
  if (remotePort !== undefined && !isPort(remotePort)) {
    throw refuse('the public port must be a whole number from 1 to 65535');
  }
  if (typeof name !== 'string' || name.length > NAME_FRAME_UNITS) {
    throw refuse('the name of a tunnel must be a string of at most 100 characters');
  }
};

/** Options sent to the edge unchanged, with their defaults. A udp client writes the PROXY header without the edge. */
const SENT: readonly SpecKey[] = [
  ...(['remote_port', 'idle_secs', 'proxy_protocol', 'subdomain', 'host_header', 'local_protocol', 'capture'] as const),
  ...(['group', 'health_check', 'policy_revision', 'p2p_service', 'p2p_allow'] as const),
];

const isSent = (spec: ClientSpec, key: SpecKey): boolean =>
  hasOption(spec.proto, key) && !(spec.proto === 'udp' && key === 'proxy_protocol');

/**
 * Returns the registration fields, with hashes instead of secrets. The policy is missing, because hashing takes time. An endpoint chosen by
 * the owner is requested exactly; an endpoint once assigned by the edge is only preferred. A group member's preference applies only if
 * groups are off, or for the port of a group that no longer exists.
 */
export const registrationFields = (spec: ClientSpec, previous: Assignment): RegistrationFields => {
  const { domain, group_key, services, p2p_publish } = spec;
  const sent = SENT.filter((key) => isSent(spec, key)).map((key) => [key, spec[key] ?? defaultOf(key)] as const);
  return {
    ...(Object.fromEntries(sent.filter(([, value]) => value !== undefined)) as RegistrationFields),
    ...(domain === undefined ? {} : { domain: asciiDomain(domain) }),
    ...(group_key === undefined ? {} : { group_key_hash: hashOf(group_key) }),
    ...(services === undefined ? {} : { services: serviceNames(services) }),
    ...(p2p_publish === undefined ? {} : { p2p_name: p2p_publish.toLowerCase() }),
    ...(spec.proto === 'p2p' ? { p2p_secret_hash: p2pSecretHash(resolveP2pSecret(spec.p2p_secret)) } : {}),
    ...(previous.tunnelId === undefined ? {} : { tunnel_id: previous.tunnelId }),
    ...kindOf(spec.proto).preferredEndpoint(spec, previous),
  };
};

/** Returns the local address as in a Host header. The `rewrite` setting sends exactly this value. */
export const localAddress = (spec: ClientSpec): string => localAuthority(spec, kindOf(spec.proto).defaultPort);

/** Returns the key under which an assigned name or port is remembered. Null if the owner chose the endpoint, or if there is no endpoint. */
export const rememberedKey = (
  spec: ClientSpec,
  { server, account, name }: { readonly server: string; readonly account: string; readonly name: string },
): string | null => {
  const { proto: protocol, subdomain, domain, remote_port: remotePort, group, files } = spec;
  if ([subdomain, domain, remotePort, group].some((chosen) => chosen !== undefined)) return null;
  const keyOf = (what: string): string => JSON.stringify([server, account, protocol, what]);
  if (protocol === 'tcp' || protocol === 'udp') return keyOf(`name:${name}`);
  if (!kindOf(protocol).carriesRequests) return null;
  return keyOf(files === undefined ? localText(spec) : `files:${resolve(files.dir)}`);
};

/** Wraps keys, secrets and the policy so that no log, error or inspection shows them. Throws a Fault for an invalid policy. */
export const concealSecrets = (spec: ClientSpec): ClientSpec =>
  ({
    ...spec,
    ...(typeof spec.group_key === 'string' ? { group_key: new Secret(spec.group_key) } : {}),
    ...(typeof spec.p2p_secret === 'string' ? { p2p_secret: new Secret(spec.p2p_secret) } : {}),
    ...(spec.policy === undefined ? {} : { policy: policyFrom(spec.policy) }),
  }) as ClientSpec;

/** Throws a Fault for invalid group options. The edge applies the same rules, but reports errors later. */
const checkGroupSpec = (spec: ClientSpec): void => {
  const { group, group_key, health_check, proto } = spec;
  const fields = { group, group_key_hash: group_key === undefined ? undefined : hashOf(group_key), health_check };
  const ungrouped = refuseGroupsOf(proto, fields);
  if (ungrouped === null && group_key !== undefined && textOf(group_key) === '') {
    throw new Fault('CLIENT_USAGE', { reason: 'the group key is empty' });
  }
  const oddity = ungrouped ?? refuseGroupFields(fields);
  if (oddity !== null) throw new Fault('CLIENT_USAGE', { reason: oddity.message });
  if (health_check !== undefined) checkHealthCheck(health_check);
};

const hashOf = (key: OptionValue<'group_key'>): string => sha256Hex(textOf(key));

const textOf = (key: OptionValue<'group_key'>): string => (typeof key === 'string' ? key : key.reveal());

/** Returns the settings of a health check with defaults, or null if nothing is probed. */
export const probeRulesOf = (check: OptionValue<'health_check'> | undefined): HealthCheckSpec | null =>
  check?.type === undefined ? null : healthCheckSpec.parse(check);

/** Checks the options of a health check. Throws a Fault for an invalid option or webhook URL. */
const checkHealthCheck = (check: OptionValue<'health_check'>): void => {
  const { alert_webhook: alertWebhook } = check;
  if (alertWebhook !== undefined && !(/^https?:\/\//i.test(alertWebhook) && URL.canParse(alertWebhook))) {
    // The URL is not quoted, because anyone who knows the URL can send to it.
    throw new Fault('CLIENT_USAGE', { reason: 'the alert webhook must be an http or https URL' });
  }
  const parsed = healthCheckSpec.safeParse(check);
  if (parsed.success) return;
  const [issue] = parsed.error.issues;
  const reason = `health_check.${issue?.path.join('.') ?? ''} is not valid: ${issue?.message ?? ''}`;
  throw new Fault('CLIENT_USAGE', { reason });
};

/** Returns the fields of a checked tunnel for comparison with another tunnel. Secrets are hashed; the name is left out. */
export const tunnelFields = (spec: ClientSpec): EntryFields =>
  entryFields(spec, {
    domain: asciiDomain,
    group_key: hashOf,
    p2p_publish: (name: string) => name.toLowerCase(),
    p2p_secret: (secret: OptionValue<'p2p_secret'>) => p2pSecretHash(resolveP2pSecret(secret)),
    services: serviceTexts,
    // The policy as it would be sent, with the current content of its files and variables.
    policy: () => policyOf(spec)?.fingerprint,
    health_check: (check: OptionValue<'health_check'>) =>
      check.type === undefined && check.alert_webhook === undefined ? undefined : check,
  });
