// `tunnel-server service`: runs the server as a systemd service.
import { existsSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { likelyParts } from '@tunnel/config/server';
import { Argument, Command, InvalidArgumentError } from 'commander';
import {
  printedUnit,
  runService,
  type ServiceAction,
  type ServiceFacts,
  type ServiceHost,
} from '../service/service.ts';
import { SYSTEM_DATA_DIR, SYSTEM_FILE } from '../setup/setup-file.ts';
import { loadConfig } from './shared.ts';

const DEFAULT_USER = 'tunnel';

const ACTIONS: readonly ServiceAction[] = ['install', 'uninstall', 'status'];

interface ServiceFlags {
  readonly config: string;
  readonly user: string;
  readonly name?: string;
  readonly print?: boolean;
}

const EXAMPLES = `
Examples:
  $ sudo tunnel-server service install
  $ tunnel-server service install --print > tunnel-server.service`;

const serviceName = (text: string): string => {
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/.test(text)) return text;
  throw new InvalidArgumentError('Use letters, digits, dots, hyphens and underscores.');
};

const userName = (text: string): string => {
  if (text === 'root') throw new InvalidArgumentError('The server should not run as root.');
  if (/^[a-z_][a-z0-9_-]{0,31}$/.test(text)) return text;
  throw new InvalidArgumentError('Use a user name of this machine, such as tunnel.');
};

export const service = (finish: (code: number) => void): Command =>
  new Command('service')
    .description('Run the server as a systemd service')
    .addArgument(new Argument('<action>', 'Action').choices(ACTIONS))
    .option('--config <file>', 'Config file', SYSTEM_FILE)
    .option('--user <name>', 'User that runs the server; created if missing', userName, DEFAULT_USER)
    .option('--name <name>', 'Name the unit tunnel-server-<name>.service, to run several servers', serviceName)
    .option('--print', 'Print the unit file without installing')
    .addHelpText('after', EXAMPLES)
    .action((action: ServiceAction, flags: ServiceFlags) => {
      if (flags.print === true) {
        process.stdout.write(printedUnit(factsOf(flags, process.env)));
        return finish(0);
      }
      return finish(runService(action, flags.name, thisMachine(), () => factsOf(flags, process.env)));
    });

const thisMachine = (): ServiceHost => ({
  env: process.env,
  isRoot: process.getuid?.() === 0,
  unitFolder: '/etc/systemd/system',
  packageFolders: ['/usr/lib/systemd/system', '/lib/systemd/system'],
  write: (text) => process.stdout.write(text),
  writeError: (text) => process.stderr.write(text),
});

/**
 * Returns the facts of the unit. The config file must be valid, because a service with wrong settings would not start. Only --print accepts
 * a missing file: the unit is then for a server that is not set up yet.
 */
export const factsOf = ({ config: file, user, name, print }: ServiceFlags, env: NodeJS.ProcessEnv): ServiceFacts => {
  const config = resolve(file);
  const isForLater = print === true && !existsSync(config);
  // The service does not inherit the variables of this shell.
  const loaded = isForLater ? null : loadConfig({ config }, withoutSettings(env));
  const [, program = ''] = process.argv;
  const command = loaded !== null && likelyParts(loaded) === 'edge' ? 'edge' : 'stack';
  const configured = loaded?.data_dir ?? SYSTEM_DATA_DIR;
  const dataDir = withoutDots(configured);
  const backupDir = withoutDots(loaded?.backup.dir ?? '');
  return {
    name,
    user,
    config,
    command,
    dataDir,
    backupDir,
    program: [process.execPath, '--max-semi-space-size=4', resolve(program)],
    isStandard:
      command === 'stack' &&
      user === DEFAULT_USER &&
      config === SYSTEM_FILE &&
      dataDir === SYSTEM_DATA_DIR &&
      backupDir === '',
  };
};

/** A relative path is refused later. Without `..`, the beginning of a path tells whether systemd creates the folder. */
const withoutDots = (path: string): string => (isAbsolute(path) ? resolve(path) : path);

const withoutSettings = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([key]) => !key.startsWith('TUNNEL_')));
