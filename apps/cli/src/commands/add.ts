// `tunnel add http|tcp|tls|udp|files …`: opens one more tunnel in a client that runs, with the flags of the commands of the same name.
import { pathFrom } from '@tunnel/config/layers';
import { Command } from 'commander';
import { addClientFlag, type ClientFlags, chooseClient } from '../agent/choose-client.ts';
import { type NamedSpec, specToWire } from '../agent/spec-wire.ts';
import { type EntryKeys, saveTunnelEntry } from '../config/entries.ts';
import { defaultConfigPath } from '../config/file.ts';
import type { GroupFlags } from '../config/flags.ts';
import type { TypedTarget } from '../config/local-target.ts';
import { guardEntryOf, type HttpGuardFlags } from '../config/policy-flags.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { oneLine } from '../io/problem-report.ts';
import type { JsonEvent } from '../output/json.ts';
import { type FilesTunnelFlags, filesSpecOf, filesTunnelCommand } from './files.ts';
import { type HttpTunnelFlags, httpSpecOf, httpTunnelCommand } from './http.ts';
import { type TcpTunnelFlags, tcpSpecOf, tcpTunnelCommand } from './tcp.ts';
import { type TlsTunnelFlags, tlsSpecOf, tlsTunnelCommand } from './tls.ts';
import { type UdpTunnelFlags, udpSpecOf, udpTunnelCommand } from './udp.ts';

interface AddFlags extends ClientFlags {
  readonly save?: boolean;
  readonly json?: boolean;
}

type Finish = (code: ExitCode) => void;

const EXAMPLES = `
Examples:
  $ tunnel add http 3000 --subdomain shop
  $ tunnel add tcp 22 --name ssh --save            # and in config.yml for the next start`;

export const addTunnelCommand = (io: Io, finish: Finish): Command => {
  const command = new Command('add').description('Open one more tunnel').addHelpText('after', EXAMPLES);
  const kinds = [
    below(httpTunnelCommand()).action((target: TypedTarget, flags: AddFlags & HttpTunnelFlags) =>
      add(httpSpecOf(target, flags, io), flags, io, finish),
    ),
    below(tcpTunnelCommand()).action((target: TypedTarget, flags: AddFlags & TcpTunnelFlags) =>
      add(tcpSpecOf(target, flags, io), flags, io, finish),
    ),
    below(tlsTunnelCommand()).action((target: TypedTarget, flags: AddFlags & TlsTunnelFlags) =>
      add(tlsSpecOf(target, flags, io), flags, io, finish),
    ),
    below(udpTunnelCommand()).action((target: TypedTarget, flags: AddFlags & UdpTunnelFlags) =>
      add(udpSpecOf(target, flags, io), flags, io, finish),
    ),
    below(filesTunnelCommand()).action((dir: string, flags: AddFlags & FilesTunnelFlags) =>
      add(filesSpecOf(dir, flags, io), flags, io, finish),
    ),
  ];
  for (const kind of kinds) command.addCommand(kind);
  return command;
};

const below = (command: Command): Command =>
  addClientFlag(command.optionsGroup('Running client:'))
    .option('--save', "Also write it into the client's config.yml")
    .option('--json', 'Print the `ready` event instead of the public URL')
    .addHelpText('after', EXAMPLES);

const add = async (
  spec: NamedSpec,
  flags: AddFlags & Partial<GroupFlags> & HttpGuardFlags,
  io: Io,
  finish: Finish,
): Promise<void> => {
  const client = await chooseClient(flags, io);
  const entry = flags.save === true ? entryOf(spec, flags, io) : null;
  const call = { method: 'POST', path: '/tunnels', json: await specToWire(spec), isSlow: true } as const;
  const ready = (await client.ask(call)).json as JsonEvent;
  io.stdout.write(`${flags.json === true ? JSON.stringify(ready) : oneLine(String(ready['public_url']))}\n`);
  const warnings = Array.isArray(ready['warnings']) ? ready['warnings'] : [];
  for (const warning of warnings) io.stderr.write(`warning: ${oneLine(String(warning))}\n`);
  // Only what the edge has taken is worth a line of the file.
  if (entry !== null) saveTunnelEntry(client.status.config ?? defaultConfigPath(io), spec.name, entry, io);
  finish(EXIT.endedAsAsked);
};

/** By the keys of config.yml, without what is so anyway. Secrets stay where they are: their file or variable is named. */
const entryOf = (spec: NamedSpec, flags: Partial<GroupFlags> & HttpGuardFlags, io: Io): EntryKeys => ({
  proto: spec.protocol,
  local_port: spec.localPort,
  local_host: spec.localHost,
  local_socket: spec.localSocket,
  allow_control_socket: spec.allowControlSocket === true ? true : undefined,
  files: spec.files === undefined ? undefined : { ...spec.files },
  subdomain: spec.subdomain,
  domain: spec.domain,
  remote_port: spec.remotePort,
  host_header: spec.hostHeader === 'keep' ? undefined : spec.hostHeader,
  local_protocol: spec.localProtocol === 'http1' ? undefined : spec.localProtocol,
  local_tls_verify: spec.localTlsVerify === false ? false : undefined,
  capture: spec.capture === false ? false : undefined,
  idle_secs: spec.idleSecs,
  proxy_protocol: spec.proxyProtocol,
  group: spec.group,
  group_key_file: flags.groupKeyFile === undefined ? undefined : pathFrom(io.cwd, flags.groupKeyFile, io.home),
  group_key_env: flags.groupKeyEnv,
  health_check: healthEntryOf(spec),
  ...guardEntryOf(flags, io),
});

const healthEntryOf = ({ healthCheck: check }: NamedSpec): EntryKeys | undefined =>
  check === undefined
    ? undefined
    : {
        type: check.type,
        path: check.path,
        interval_secs: check.intervalSecs,
        timeout_secs: check.timeoutSecs,
        max_failed: check.maxFailed,
        expect_2xx: check.expect2xx,
        alert_webhook: check.alertWebhook,
      };
