// The flags of commands whose tunnels may carry HTTP: how much is shown of each request.
import type { Command } from 'commander';

export interface RequestFlags {
  /** false: without the local inspector. */
  readonly inspect: boolean;
  readonly quiet?: boolean;
}

export const addRequestFlags = (command: Command): Command =>
  command
    .option('--no-inspect', 'without the local inspector page')
    .option('--quiet', 'without a line or an event for each request');
