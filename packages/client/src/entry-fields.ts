// What a tunnel or a connection to a peer asks for, in the one form in which two of them can be compared: the keys of config.yml, defaults
// filled in, secrets as hashes.
import type { EntryFields } from '@tunnel/core';
import { healthCheckSpec } from '@tunnel/protocol';
import { serviceTexts } from './forward/service-targets.ts';
import { p2pSecretHash, p2pSecretOf } from './p2p-secret.ts';
import type { ConnectPeerOptions } from './peer-types.ts';
import { policyOf, registrationFields, type TunnelSpec } from './tunnel-spec.ts';

/** Of a spec that was checked. Its name is not part of it. */
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

export const peerFields = (options: ConnectPeerOptions): EntryFields => ({
  p2p_connect: options.p2pName.toLowerCase(),
  p2p_secret: p2pSecretHash(p2pSecretOf(options.secret)),
  p2p_service: options.service ?? 'tcp',
  p2p_direct: options.direct ?? true,
  listen_host: options.listenHost ?? '127.0.0.1',
  listen_port: options.listenPort,
});
