// The `tunnel` program with its commands. No code in this file ends the process.
import type { Command } from 'commander';
import { addTunnelCommand } from './commands/add.ts';
import { billingCommand } from './commands/billing.ts';
import { closeCommand } from './commands/close.ts';
import { completionCommand } from './commands/completion.ts';
import { reloadCommand, removeCommand, stopCommand } from './commands/control.ts';
import { doctorCommand } from './commands/doctor.ts';
import { domainsCommand } from './commands/domains.ts';
import { groupKeyCommand, groupsCommand } from './commands/groups.ts';
import { initCommand } from './commands/init.ts';
import { keysCommand } from './commands/keys.ts';
import { listCommand } from './commands/list.ts';
import { loginCommand, logoutCommand } from './commands/login.ts';
import { logsCommand } from './commands/logs.ts';
import { mcpCommand } from './commands/mcp.ts';
import { mcpPublishCommand } from './commands/mcp-publish.ts';
import { p2pCommand } from './commands/p2p.ts';
import { policyCommand } from './commands/policy.ts';
import { KIND_NAMES, publishCommand } from './commands/publish.ts';
import { readyCommand } from './commands/ready.ts';
import { replayCommand } from './commands/replay.ts';
import { requestsCommand } from './commands/requests.ts';
import { releaseCommand, reservationsCommand, reserveCommand } from './commands/reservations.ts';
import { serviceCommand } from './commands/service.ts';
import { checkCommand, startCommand } from './commands/start.ts';
import { isAlone, showNextStep, statusCommand } from './commands/status.ts';
import { usageCommand } from './commands/usage.ts';
import type { ExitCode } from './io/exit-codes.ts';
import type { Io } from './io/io.ts';
import { reportProblem } from './io/problem-report.ts';
import { type CommandGroups, makeProgram, runProgram } from './program.ts';

/** Commands by heading, in the order of `tunnel --help`. Commands for newcomers come first. */
const COMMAND_GROUPS: CommandGroups = [
  ['Share a local service:', [...KIND_NAMES.map(publishCommand), p2pCommand, startCommand]],
  [
    'Inspect:',
    [
      ...[listCommand, closeCommand, requestsCommand, replayCommand],
      ...[statusCommand, logsCommand, groupsCommand, doctorCommand],
    ],
  ],
  ['AI agents (MCP):', [mcpCommand, mcpPublishCommand]],
  ['Change a running client:', [addTunnelCommand, removeCommand, reloadCommand, readyCommand, stopCommand]],
  ['Account:', [loginCommand, logoutCommand, keysCommand, usageCommand, billingCommand]],
  ['Names and ports:', [reserveCommand, reservationsCommand, releaseCommand, domainsCommand]],
  ['Set up:', [initCommand, checkCommand, groupKeyCommand, policyCommand, serviceCommand, completionCommand]],
];

export const buildProgram = (io: Io, finish: (code: ExitCode) => void): Command =>
  makeProgram(io, finish, { groups: COMMAND_GROUPS, isBrief: false });

/** Runs the program with the given arguments. Resolves with the exit code. */
export const run = async (args: readonly string[], io: Io): Promise<ExitCode> => {
  if (!isAlone(args, io)) return runProgram(args, io, COMMAND_GROUPS);
  try {
    return await showNextStep(io);
  } catch (error) {
    return reportProblem(error, io, 'tunnel');
  }
};
