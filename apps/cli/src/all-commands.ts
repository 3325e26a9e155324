// The program `tunnel` with all commands. No code in this file ends the process.
import type { Command } from 'commander';
import { type LoaderOf, makeGroups, runCommand } from './command-list.ts';
import { KIND_NAMES, type KindName } from './config/kinds.ts';
import type { ExitCode } from './io/exit-codes.ts';
import type { Io } from './io/io.ts';
import { reportProblem } from './io/problem-report.ts';
import { type MakeCommand, makeProgram } from './program.ts';

const published = (kind: KindName) => async (): Promise<MakeCommand> =>
  (await import('./commands/publish.ts')).publishCommand(kind);

/** Functions that load a command, by the name of the command. */
const LOADERS: Readonly<Record<string, () => Promise<MakeCommand>>> = {
  ...Object.fromEntries(KIND_NAMES.map((kind) => [kind, published(kind)])),
  p2p: async () => (await import('./commands/p2p.ts')).p2pCommand,
  start: async () => (await import('./commands/start.ts')).startCommand,
  list: async () => (await import('./commands/list.ts')).listCommand,
  close: async () => (await import('./commands/close.ts')).closeCommand,
  requests: async () => (await import('./commands/requests.ts')).requestsCommand,
  replay: async () => (await import('./commands/replay.ts')).replayCommand,
  status: async () => (await import('./commands/status.ts')).statusCommand,
  logs: async () => (await import('./commands/logs.ts')).logsCommand,
  groups: async () => (await import('./commands/groups.ts')).groupsCommand,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand,
  mcp: async () => (await import('./commands/mcp.ts')).mcpCommand,
  'mcp-publish': async () => (await import('./commands/mcp-publish.ts')).mcpPublishCommand,
  add: async () => (await import('./commands/add.ts')).addTunnelCommand,
  remove: async () => (await import('./commands/control.ts')).removeCommand,
  reload: async () => (await import('./commands/control.ts')).reloadCommand,
  ready: async () => (await import('./commands/ready.ts')).readyCommand,
  stop: async () => (await import('./commands/control.ts')).stopCommand,
  login: async () => (await import('./commands/login.ts')).loginCommand,
  logout: async () => (await import('./commands/login.ts')).logoutCommand,
  keys: async () => (await import('./commands/keys.ts')).keysCommand,
  usage: async () => (await import('./commands/usage.ts')).usageCommand,
  billing: async () => (await import('./commands/billing.ts')).billingCommand,
  reserve: async () => (await import('./commands/reservations.ts')).reserveCommand,
  reservations: async () => (await import('./commands/reservations.ts')).reservationsCommand,
  release: async () => (await import('./commands/reservations.ts')).releaseCommand,
  domains: async () => (await import('./commands/domains.ts')).domainsCommand,
  init: async () => (await import('./commands/init.ts')).initCommand,
  check: async () => (await import('./commands/start.ts')).checkCommand,
  'group-key': async () => (await import('./commands/groups.ts')).groupKeyCommand,
  policy: async () => (await import('./commands/policy.ts')).policyCommand,
  service: async () => (await import('./commands/service.ts')).serviceCommand,
  completion: async () => (await import('./commands/completion.ts')).completionCommand(buildProgram),
};

const loaderOf: LoaderOf = (name) => LOADERS[name];

/** Makes the program with every command loaded, for the reference in the docs and for shell completion. */
export const buildProgram = async (io: Io, finish: (code: ExitCode) => void): Promise<Command> =>
  makeProgram(io, finish, { groups: await makeGroups(loaderOf, () => true), isBrief: false });

/** Runs the program with the given arguments. Resolves with the exit code. */
export const run = async (args: readonly string[], io: Io): Promise<ExitCode> => {
  try {
    // Without a terminal, the help is more useful than a suggestion.
    if (args.length === 0 && io.stdout.isTTY === true) {
      return await (await import('./commands/status.ts')).showNextStep(io);
    }
  } catch (error) {
    return reportProblem(error, io, 'tunnel');
  }
  return runCommand(args, io, loaderOf);
};
