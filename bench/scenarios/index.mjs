// All scenarios, in the order in which they run. A scenario has these fields:
//   name, title     name for --scenario and heading (`quickTitle` if --quick changes the heading)
//   figures         keys of figures.mjs, in the order of the columns
//   targets         { path, figure, ratioAtMost | atMost | atLeast, …FromNode24 }: the values to reach
//   paths           names of paths, if they differ from the usual paths
//   protocol        'http' or 'udp' for such tunnels; otherwise tcp
//   yardstick       path to compare with, if not nginx
//   needs           required programs: 'wrk'
//   network         'small-buffers' if ordinary kernel buffers would disturb the machine; `withoutNetwork` is the note without it
//   measure(stage)  runs jobs of bench/load through the stage and returns the figures; `window` is for profiles
import { UsageError } from '../lib/options.mjs';
import { httpScenarios } from './http.mjs';
import { httpPolicyScenarios } from './http-policy.mjs';
import { p2pScenarios } from './p2p.mjs';
import { platformScenarios } from './platform.mjs';
import { tcpBesideBulk } from './tcp-beside-bulk.mjs';
import { tcpBulkScenarios } from './tcp-bulk.mjs';
import { tcpConnect } from './tcp-connect.mjs';
import { tcpEcho } from './tcp-echo.mjs';
import { tcpIdle } from './tcp-idle.mjs';
import { tcpStalled } from './tcp-stalled.mjs';
import { tlsNewConnections } from './tls-new-connections.mjs';
import { tlsPassthroughScenarios } from './tls-passthrough.mjs';
import { udpScenarios } from './udp.mjs';

export const SCENARIOS = [
  ...tcpBulkScenarios,
  ...[tcpEcho, tcpConnect, tcpBesideBulk, tcpIdle, tcpStalled],
  ...tlsPassthroughScenarios,
  ...udpScenarios,
  ...httpScenarios,
  ...httpPolicyScenarios,
  tlsNewConnections,
  ...p2pScenarios,
  ...platformScenarios,
];

/** @param {string[]} names full names or their beginnings: `tcp-bulk` selects all four */
export function chooseScenarios(names) {
  if (names.length === 0) return SCENARIOS;
  const unknown = names.filter((name) => !SCENARIOS.some((scenario) => scenario.name.startsWith(name)));
  if (unknown.length > 0) throw new UsageError(`no scenario begins with ${unknown.join(', ')}; see --list`);
  return SCENARIOS.filter((scenario) => names.some((name) => scenario.name.startsWith(name)));
}
