// Values with which the chart is tried.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../../../../scripts/lib/paths.mjs';

const REQUIRED = {
  image: { registry: 'registry.test/hatchway' },
  domain: 'tunnels.test',
  platform: {
    publicUrl: 'http://console.test:8080',
    database: { secretName: 'hatchway-database' },
    keys: { secretName: 'hatchway-keys' },
  },
};

const CLIENT = {
  enabled: true,
  server: 'tunnels.test:4040',
  keySecretName: 'hatchway-client',
  tunnels: { web: { proto: 'http', local_host: '127.0.0.1', local_port: 3000, subdomain: 'web' } },
};

/** Merges tables; other values are replaced. */
export const merged = (below, above) => {
  if (above === null || typeof above !== 'object' || Array.isArray(above)) return above;
  const keys = new Set([...Object.keys(below ?? {}), ...Object.keys(above)]);
  return Object.fromEntries(
    [...keys].map((key) => [key, key in above ? merged(below?.[key], above[key]) : below[key]]),
  );
};

/** Text with every character that a template could break. */
export const ODD_TEXT = `quote " and ' backslash \\ {{ .Values }} <&> newline\nand: # ${'$'}{HOME} [x]`;

export const VALUE_SETS = {
  defaults: REQUIRED,
  'external database': merged(REQUIRED, {
    platform: {
      replicas: 3,
      publicUrl: 'https://console.test',
      trustedProxies: ['10.0.0.0/8'],
      database: { directUrlKey: 'direct-url' },
      mail: { secretName: 'hatchway-mail', from: `Hatchway "team" <no-reply@tunnels.test>` },
      stripe: { secretName: 'hatchway-stripe' },
      ingress: { enabled: true, className: 'nginx', tlsSecretName: 'console-tls' },
    },
    adminToken: { secretName: 'hatchway-admin' },
    config: { platform: { plans: { free: { tunnel_limit: 100 } }, sign_up: 'invite' } },
  }),
  'certificates by the server': merged(REQUIRED, {
    listen: '::',
    platform: {
      replicas: 1,
      publicUrl: 'https://console.test:8080',
      tls: { secretName: 'hatchway-platform-tls', caKey: '' },
    },
    config: { acme: { enabled: true, email: 'admin@tunnels.test', dns: 'builtin' } },
    podSecurityContext: { runAsUser: null, runAsGroup: null, fsGroup: null },
  }),
  'edge alone': {
    image: REQUIRED.image,
    domain: 'fra.tunnels.test',
    tls: { secretName: 'fra-tls' },
    platform: { enabled: false },
    edge: { platformUrl: 'https://console.test', credentialSecretName: 'fra-credential', hostNetwork: true },
    config: { region: { id: 'fra', name: 'Frankfurt' } },
  },
  client: { image: REQUIRED.image, platform: { enabled: false }, edge: { enabled: false }, client: CLIENT },
  'examples/kubernetes-client': parse(readFileSync(join(ROOT, 'examples/kubernetes-client/values.yaml'), 'utf8')),
  'everything on': merged(REQUIRED, {
    image: { tag: '1.2.3', pullSecrets: ['registry-login'] },
    tls: { secretName: 'hatchway-tls' },
    platform: {
      publicUrl: 'https://console.test:8080',
      tls: { secretName: 'hatchway-platform-tls' },
      mail: { secretName: 'hatchway-mail', from: 'no-reply@tunnels.test' },
      stripe: { secretName: 'hatchway-stripe' },
      service: { type: 'LoadBalancer', annotations: { 'example.test/odd': ODD_TEXT } },
      ingress: { enabled: true, className: 'nginx', annotations: { a: 'b' }, tlsSecretName: 'console-tls' },
      extraEnv: [
        { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/tunnel/edge-ca/ca.crt' },
        { name: 'TUNNEL_PLATFORM__BILLING__PROCESSOR', value: 'simulator' },
      ],
      extraVolumes: [{ name: 'edge-ca', secret: { secretName: 'hatchway-edge-ca' } }],
      extraVolumeMounts: [{ name: 'edge-ca', mountPath: '/etc/tunnel/edge-ca', readOnly: true }],
      podAnnotations: { 'example.test/odd': ODD_TEXT },
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      tolerations: [{ key: 'tunnels', operator: 'Exists' }],
      affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' },
      ],
    },
    edge: {
      internalClusterIP: '127.0.0.1',
      drainSeconds: 5,
      service: {
        annotations: { 'example.test/odd': ODD_TEXT },
        loadBalancerSourceRanges: ['0.0.0.0/0'],
        separateUdp: true,
        udpAnnotations: { a: 'b' },
      },
      persistence: { storageClass: 'fast' },
      podAnnotations: { a: 'b' },
    },
    client: merged(CLIENT, { server: 'tunnels.test:443', caSecretName: 'hatchway-edge-ca' }),
    adminToken: { secretName: 'hatchway-admin' },
    monitoring: { enabled: true, serviceMonitor: true, prometheusRule: true, labels: { release: 'prometheus' } },
    networkPolicy: {
      platformFrom: [{ namespaceSelector: { matchLabels: { name: 'ingress' } } }],
      metricsFrom: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
    },
    config: {
      region: { name: ODD_TEXT.replaceAll(/\n/g, ' ') },
      capture: { bodies: false },
      limits: { account_share: 0.5, connections_total: 1_000_000 },
      auth: { keys: [] },
      platform: { plans: { 'a-plan': { tunnel_limit: 1_000_000, allow_custom_subdomains: false } } },
    },
  }),
};

/** Values that must be refused: the message contains the text. */
export const REFUSED = [
  [{}, 'registry'],
  [{ image: REQUIRED.image }, 'domain'],
  [merged(REQUIRED, { edge: { replicas: 2 } }), 'replicas'],
  [merged(REQUIRED, { edge: { replica: 1 } }), 'replica'],
  [merged(REQUIRED, { platfrom: {} }), 'platfrom'],
  [merged(REQUIRED, { platform: { database: { secretName: '' } } }), 'secretName'],
  [merged(REQUIRED, { platform: { database: { password: 'x' } } }), 'password'],
  [merged(REQUIRED, { platform: { keys: { secretName: '' } } }), 'secretName'],
  [merged(REQUIRED, { platform: { mail: { secretName: 'mail' } } }), 'from'],
  [merged(REQUIRED, { platform: { publicUrl: 'console.test' } }), 'publicUrl'],
  [merged(REQUIRED, { image: { tag: 'latest' } }), 'tag'],
  [merged(REQUIRED, { domain: 'a b.test' }), 'domain'],
  [merged(REQUIRED, { config: { server: { contrl_port: 1 } } }), 'contrl_port'],
  [merged(REQUIRED, { config: { database: { url: 'postgres://x' } } }), 'database'],
  [merged(REQUIRED, { config: { server: { host: '127.0.0.1' } } }), 'host'],
  [merged(REQUIRED, { edge: { tcpPorts: { from: 5, to: 4 } } }), 'edge.tcpPorts.from is greater than edge.tcpPorts.to'],
  [merged(REQUIRED, { edge: { tcpPorts: { from: 1000, to: 9999 } } }), 'more than 100 ports'],
  [merged(REQUIRED, { edge: { udpPathPorts: [20100, 20111] } }), 'also in edge.udpPorts'],
  [merged(REQUIRED, { edge: { udpPathPorts: [1] } }), 'udpPathPorts'],
  [merged(REQUIRED, { edge: { ports: { api: 20001 } } }), 'also in edge.tcpPorts'],
  [merged(REQUIRED, { config: { acme: { enabled: true, dns: 'builtin' } } }), 'needs platform.replicas = 1'],
  [merged(REQUIRED, { edge: { hostNetwork: true } }), 'edge.hostNetwork needs tls.secretName'],
  [merged(REQUIRED, { edge: { platformUrl: 'https://console.test' } }), 'edge.platformUrl needs tls.secretName'],
  [merged(REQUIRED, { config: { acme: { enabled: true } } }), 'needs platform.tls.secretName'],
  [{ image: REQUIRED.image, platform: { enabled: false }, edge: { enabled: false } }, 'nothing is enabled'],
  [{ ...REQUIRED, client: { enabled: true } }, 'client'],
  [{ ...REQUIRED, client: merged(CLIENT, { tunnels: { web: { group_key: 'secret' } } }) }, 'web'],
  [merged(REQUIRED, { monitoring: { serviceMonitor: true } }), 'monitoring'],
];
