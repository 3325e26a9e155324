// What a tunnel is asked to be, its group and its health check too: what its owner says, what of it can work, and what the edge is told.
import { resolve } from 'node:path';
import { Fault } from '@tunnel/errors';
import { isHostHeader } from '@tunnel/http1';
import {
  type ControlMessageInput,
  decodeControl,
  encodeControl,
  type HealthCheckSpec,
  healthCheckSpec,
  type TunnelProtocol,
  tunnelProtocol,
} from '@tunnel/protocol';
import { refuseGroupFields, refuseGroupsOf } from '@tunnel/rules/tunnels';
import { Secret, sha256Hex } from '@tunnel/runtime';
import { checkLocalSpec, isPort, type LocalSpec, localAuthority, localText } from '../local/local-target.ts';
import { checkServices, serviceTexts } from '../local/service-targets.ts';
import { type PolicyAbout, type PolicyInput, policyFrom, type TunnelPolicy } from '../policy/tunnel-policy.ts';
import { type Assignment } from '../state/resume-state.ts';
import { KIND_KEYS, kindOf } from './kinds/kinds.ts';
import { checkP2pName, p2pSecretOf } from './kinds/p2p-secret.ts';
import { type KindSpec } from './kinds/tunnel-kind.ts';
import { type EntryFields } from './plan-reload.rules.ts';

/** How the local service is to be probed. */
export interface HealthCheck {
  /** `tcp`: a connection opens. `http`: a GET is answered. Left out: no probe, the tunnel counts as healthy. */
  readonly type?: 'tcp' | 'http' | undefined;
  /** http: what is asked for; begins with a slash. */
  readonly path?: string | undefined;
  /** From the beginning of one probe to the next; 10 when left out. */
  readonly intervalSecs?: number | undefined;
  /** For one probe, from connecting to the status line; 3 when left out. */
  readonly timeoutSecs?: number | undefined;
  /** Failures in a row that make it unhealthy; 3 when left out. */
  readonly maxFailed?: number | undefined;
  /** http: false takes any status for a good one. */
  readonly expect2xx?: boolean | undefined;
  /** Where the edge tells that the group has no healthy member left. */
  readonly alertWebhook?: string | undefined;
}

/** What a tunnel says about its group. The key itself stays here. */
interface GroupSpec {
  /** The pool to join; with a key only. HTTP: also its subdomain, unless there is one, or a domain. */
  readonly group?: string;
  /** What all members of the group share. Only its SHA-256 leaves the process. */
  readonly groupKey?: Secret | string;
  readonly healthCheck?: HealthCheck;
}

/** Who may visit a tunnel, and what happens to requests on the way. */
interface GuardSpec {
  /** A file, the rules, or `{ login, rules }`: docs/policy.md. Passwords leave the process as scrypt, tokens as SHA-256. */
  readonly policy?: PolicyInput;
  /** Groups: a member with a higher one replaces the policy of all; 0 when left out. */
  readonly policyRevision?: number;
}

export interface TunnelSpec extends GroupSpec, GuardSpec, KindSpec, LocalSpec {
  /** `https`: the local service speaks TLS. */
  readonly protocol: TunnelProtocol;
  /** For people; `<protocol>-<port>`, or after the socket or the folder, when left out. */
  readonly name?: string;
}

/** What the frame has room for; within it the edge says what it takes. */
const NAME_FRAME_UNITS = 200;

type Registration = Extract<ControlMessageInput, { type: 'RegisterTunnel' }>;
type RegistrationFields = Omit<Registration, 'type' | 'request_id' | 'name' | 'protocol' | 'local_addr'>;

/** Throws a Fault. A control frame with one of these would be refused as a whole, and nobody would know which tunnel was meant. */
export const checkTunnelSpec = (spec: TunnelSpec): void => {
  const { hostHeader, subdomain, protocol, localProtocol } = spec;
  checkAddresses(spec);
  checkKeys(spec);
  if (localProtocol === 'h2c' && !kindOf(protocol).takesH2c) {
    throw new Fault('CLIENT_USAGE', { reason: 'h2c is HTTP/2 without TLS: it goes with http, not with https' });
  }
  checkFilesSpec(spec);
  if (hostHeader !== undefined && !isHostHeader(hostHeader)) {
    throw new Fault('CLIENT_USAGE', {
      reason: 'the Host header must be keep, rewrite or a host name with an optional port',
    });
  }
  if (subdomain !== undefined && subdomain.length > 300) {
    throw new Fault('CLIENT_USAGE', { reason: 'the subdomain has more than 63 characters' });
  }
  checkHost(spec);
  checkGroupSpec(spec);
  checkGuard(spec);
  if (protocol === 'p2p') {
    checkP2pName(spec.p2pName);
    p2pSecretOf(spec.secret);
  }
  checkFrame(spec);
};

/** The edge would refuse the same, and not as soon. */
const checkHost = ({ protocol, subdomain, domain, group }: TunnelSpec): void => {
  if (subdomain !== undefined && domain !== undefined) {
    throw new Fault('CLIENT_USAGE', { reason: 'a tunnel has a domain or a subdomain, not both' });
  }
  // A group's name is its subdomain where it says none.
  if (protocol === 'tls' && subdomain === undefined && domain === undefined && group === undefined) {
    throw new Fault('CLIENT_USAGE', { reason: 'a tls tunnel needs a domain or a subdomain' });
  }
};

/** What a policy is judged with. */
export const policyAbout = ({ protocol, services = {} }: TunnelSpec): PolicyAbout => ({
  protocol,
  services: serviceNames(services),
});

/** In one order, however they were written: they are part of what the edge answers with. */
const serviceNames = (services: NonNullable<TunnelSpec['services']>): string[] => Object.keys(services).sort();

const checkGuard = (spec: TunnelSpec): void => {
  const { policy, policyRevision, services } = spec;
  if (services !== undefined) checkServices(services);
  if (policyRevision !== undefined && !(Number.isSafeInteger(policyRevision) && policyRevision >= 0)) {
    throw new Fault('CLIENT_USAGE', { reason: 'the revision of a policy must be a whole number from 0' });
  }
  if (policy !== undefined) policyFrom(policy).check(policyAbout(spec));
};

/** Of a spec that was concealed: read once. */
export const policyOf = ({ policy }: TunnelSpec): TunnelPolicy | null =>
  policy === undefined ? null : policyFrom(policy);

export const groupKeyOf = ({ group, groupKey }: TunnelSpec): Secret | null => {
  if (group === undefined || groupKey === undefined) return null;
  return typeof groupKey === 'string' ? new Secret(groupKey) : groupKey;
};

/** The client serves the folder itself: there is nothing to probe, and nobody who speaks HTTP/2. */
const checkFilesSpec = ({ files, healthCheck, localProtocol }: TunnelSpec): void => {
  if (files === undefined) return;
  if (healthCheck !== undefined) throw new Fault('CLIENT_USAGE', { reason: 'a folder of files takes no health check' });
  if (localProtocol === 'h2c') throw new Fault('CLIENT_USAGE', { reason: 'h2c goes with a service, not with files' });
};

/** What says nothing about this kind of tunnel was meant for another one. */
const checkKeys = (spec: TunnelSpec): void => {
  const { protocol, idleSecs, proxyProtocol } = spec;
  const refuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });
  const { keys } = kindOf(protocol);
  const foreign = KIND_KEYS.find((key) => spec[key] !== undefined && !keys.includes(key));
  if (foreign !== undefined) throw refuse(`\`${foreign}\` says nothing about a ${protocol} tunnel`);
  if (idleSecs !== undefined && !(Number.isInteger(idleSecs) && idleSecs >= 5 && idleSecs <= 3600)) {
    throw refuse('the idle time must be a whole number of seconds from 5 to 3600');
  }
  if (proxyProtocol !== undefined && proxyProtocol !== 'v1' && proxyProtocol !== 'v2') {
    throw refuse('the PROXY protocol is v1 or v2');
  }
  if (protocol === 'udp' && proxyProtocol === 'v1') throw refuse('the PROXY protocol of udp is v2');
};

/** Whatever else has no words of its own above: better here than as a frame that nobody answers. */
const checkFrame = (spec: TunnelSpec): void => {
  const { protocol, name = '' } = spec;
  const read = decodeControl(
    encodeControl({ type: 'RegisterTunnel', request_id: 'r', name, protocol, ...registrationFields(spec, {}) }),
  );
  if (!read.ok) throw new Fault('CLIENT_USAGE', { reason: read.fault.message });
};

/** Callers of the library may come without a type checker. */
const checkAddresses = (spec: TunnelSpec): void => {
  const { protocol, name = '', remotePort } = spec;
  const refuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });
  if (!tunnelProtocol.safeParse(protocol).success) throw refuse(`a tunnel is ${tunnelProtocol.options.join(', ')}`);
  checkLocalSpec(spec);
  if (remotePort !== undefined && !isPort(remotePort)) {
    throw refuse('the public port must be a whole number from 1 to 65535');
  }
  if (typeof name !== 'string' || name.length > NAME_FRAME_UNITS) {
    throw refuse('the name of a tunnel must be a text of at most 100 characters');
  }
};

/**
 * What was given is asked for exactly; what the edge once chose is preferred. Of a group's member the preference counts only
 * where groups are off, or for the port of a group that is gone: else its endpoint is the group's.
 */
export const registrationFields = (spec: TunnelSpec, previous: Assignment): RegistrationFields => ({
  ...groupFields(spec),
  ...guardFields(spec),
  ...(previous.tunnelId === undefined ? {} : { tunnel_id: previous.tunnelId }),
  ...kindOf(spec.protocol).endpointFields(spec, previous),
});

/** The policy itself takes its time to be made, and is added by whoever has it. */
const guardFields = ({ policyRevision, services }: TunnelSpec): RegistrationFields => ({
  ...(policyRevision === undefined ? {} : { policy_revision: policyRevision }),
  ...(services === undefined ? {} : { services: serviceNames(services) }),
});

/** As a Host header would name it: `rewrite` sends exactly this. */
export const localAddress = (spec: TunnelSpec): string => localAuthority(spec, kindOf(spec.protocol).defaultPort);

/** What the tunnel's name or port is remembered by; null: its owner chose the endpoint, or it has none. */
export const rememberedKey = (
  spec: TunnelSpec,
  { server, account, name }: { readonly server: string; readonly account: string; readonly name: string },
): string | null => {
  const { protocol, subdomain, domain, remotePort, group, files } = spec;
  if ([subdomain, domain, remotePort, group].some((chosen) => chosen !== undefined)) return null;
  const keyOf = (what: string): string => JSON.stringify([server, account, protocol, what]);
  if (protocol === 'tcp' || protocol === 'udp') return keyOf(`name:${name}`);
  if (!kindOf(protocol).carriesRequests) return null;
  return keyOf(files === undefined ? localText(spec) : `files:${resolve(files.dir)}`);
};

/** The same, with keys, secrets and a policy that no log, error or inspection shows. Throws a Fault for a policy that is none. */
export const concealKey = (spec: TunnelSpec): TunnelSpec => ({
  ...spec,
  ...(typeof spec.groupKey === 'string' ? { groupKey: new Secret(spec.groupKey) } : {}),
  ...(typeof spec.secret === 'string' ? { secret: new Secret(spec.secret) } : {}),
  ...(spec.policy === undefined ? {} : { policy: policyFrom(spec.policy) }),
});

/** Throws a Fault. The edge would refuse the same, and not as soon. */
const checkGroupSpec = (spec: GroupSpec & { readonly protocol: TunnelProtocol }): void => {
  const { group, groupKey, healthCheck, protocol } = spec;
  const groupKeyHash = groupKey === undefined ? undefined : hashOf(groupKey);
  const fields = { group, groupKeyHash, healthCheck };
  const ungrouped = refuseGroupsOf(protocol, fields);
  if (ungrouped === null && groupKey !== undefined && textOf(groupKey) === '') {
    throw new Fault('CLIENT_USAGE', { reason: 'the group key is empty' });
  }
  const oddity = ungrouped ?? refuseGroupFields(fields);
  if (oddity !== null) throw new Fault('CLIENT_USAGE', { reason: oddity.message });
  if (healthCheck !== undefined) checkHealthCheck(healthCheck);
};

export const groupFields = ({ group, groupKey, healthCheck }: GroupSpec): Partial<Registration> => ({
  ...(group === undefined ? {} : { group }),
  ...(groupKey === undefined ? {} : { group_key_hash: hashOf(groupKey) }),
  ...(healthCheck === undefined ? {} : { health_check: wireHealthCheck(healthCheck) }),
});

const hashOf = (key: Secret | string): string => sha256Hex(textOf(key));

const textOf = (key: Secret | string): string => (typeof key === 'string' ? key : key.reveal());

type WireCheck = NonNullable<Registration['health_check']>;

const wireHealthCheck = (check: HealthCheck): WireCheck => ({
  type: check.type,
  path: check.path,
  interval_secs: check.intervalSecs,
  timeout_secs: check.timeoutSecs,
  max_failed: check.maxFailed,
  expect_2xx: check.expect2xx,
  alert_webhook: check.alertWebhook,
});

/** With its defaults; null: there is nothing to probe. */
export const probeRulesOf = (check: HealthCheck | undefined): HealthCheckSpec | null =>
  check?.type === undefined ? null : healthCheckSpec.parse(wireHealthCheck(check));

/** Throws a Fault for what no frame can carry, and for a URL that is none. */
const checkHealthCheck = (check: HealthCheck): void => {
  const { alertWebhook } = check;
  if (alertWebhook !== undefined && !(/^https?:\/\//i.test(alertWebhook) && URL.canParse(alertWebhook))) {
    // Not repeated: whoever knows such a URL can write to it.
    throw new Fault('CLIENT_USAGE', { reason: 'the alert webhook must be an http or https URL' });
  }
  const parsed = healthCheckSpec.safeParse(wireHealthCheck(check));
  if (parsed.success) return;
  const [issue] = parsed.error.issues;
  const reason = `health_check.${issue?.path.join('.') ?? ''} is not valid: ${issue?.message ?? ''}`;
  throw new Fault('CLIENT_USAGE', { reason });
};

/**
 * What a tunnel asks for, in the one form in which two of them can be compared: the keys of config.yml, defaults filled in, secrets as hashes. Of a
 * spec that was checked; its name is not part of it.
 */
export const tunnelFields = (spec: TunnelSpec): EntryFields => {
  // What the edge is told, and below it what it is not.
  const { health_check: check, ...told } = registrationFields(spec, {});
  return {
    proto: spec.protocol,
    ...told,
    ...targetFields(spec),
    ...(check?.type === undefined && check?.alert_webhook === undefined
      ? {}
      : { health_check: healthCheckSpec.parse(check) }),
    ...(spec.protocol === 'https' ? { local_tls_verify: spec.localTlsVerify ?? true } : {}),
    ...(spec.proxyProtocol === undefined ? {} : { proxy_protocol: spec.proxyProtocol }),
    ...(spec.services === undefined ? {} : { services: serviceTexts(spec.services) }),
    // As it would be sent: with what its files and variables say now.
    ...(spec.policy === undefined ? {} : { policy: policyOf(spec)?.fingerprint }),
    ...(spec.protocol === 'p2p' ? { p2p_direct: spec.direct ?? true } : {}),
  };
};

const targetFields = ({ localHost = '127.0.0.1', localPort, localSocket, files }: TunnelSpec): EntryFields => {
  if (files !== undefined) {
    const { dir, spa = false, listing = false } = files;
    return { files: { dir, spa, listing } };
  }
  return localSocket === undefined ? { local_host: localHost, local_port: localPort } : { local_socket: localSocket };
};
