#!/usr/bin/env node
// `tunnel mcp` as an executable of its own, for hosts that start a program by its name.
process.argv.splice(2, 0, 'mcp');
await import('./tunnel.mjs');
