// Downloads a newer Node.js, the MCP inspector and the conformance suite, and prints their paths as JSON.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fetchNode, fetchProgram } from '../../../../scripts/lib/fetch-package.mjs';

const NODE_MAJOR = 24;
const PROGRAMS = {
  inspector: ['@modelcontextprotocol/inspector', '2.12.0', 'mcp-inspector'],
  conformance: ['@modelcontextprotocol/conformance', '0.1.16', 'conformance'],
};

const paths = { node: (await fetchNode(NODE_MAJOR)).path };
for (const [name, [packageName, version, bin]] of Object.entries(PROGRAMS)) {
  const dir = await fetchProgram(packageName, version);
  paths[name] = join(dir, JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')).bin[bin]);
}
process.stdout.write(`${JSON.stringify(paths)}\n`);
