// The compose files against the loader of Docker Compose, which checks the schema of the Compose specification.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../../../scripts/lib/paths.mjs';
import { FOLDER, must } from './programs.mjs';

const SOURCES = join(FOLDER, 'compose-go');
const PROGRAM = join(SOURCES, 'check');
const MODULE = 'github.com/compose-spec/compose-go/v2@v2.9.0';

const COMPOSE_FILES = [
  'deploy/compose/compose.yml',
  'deploy/compose/compose.client.yml',
  'examples/compose-sidecar/compose.yml',
];

const MAIN = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	options, err := cli.NewProjectOptions(os.Args[2:], cli.WithEnvFiles(os.Args[1]), cli.WithDotEnv)
	if err == nil {
		_, err = options.LoadProject(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`;

function build(env) {
  if (existsSync(PROGRAM)) return;
  mkdirSync(SOURCES, { recursive: true });
  writeFileSync(join(SOURCES, 'main.go'), MAIN);
  const go = (...args) => must('go', args, { cwd: SOURCES, env });
  if (!existsSync(join(SOURCES, 'go.mod'))) go('mod', 'init', 'check');
  go('get', MODULE);
  go('mod', 'tidy');
  go('build', '-o', PROGRAM, '.');
}

export function checkSchema({ env, check, say }) {
  if (spawnSync('go', ['version']).error !== undefined) {
    say('skipped: the schema of the compose files, because go is not found');
    return;
  }
  build({ ...env, HOME: process.env.HOME });
  const variables = join(ROOT, 'deploy/compose/.env.example');
  for (const file of COMPOSE_FILES) {
    const { status, stderr } = spawnSync(PROGRAM, [variables, join(ROOT, file)], { cwd: ROOT, encoding: 'utf8' });
    check(status === 0, `Docker Compose's loader accepts ${file}${status === 0 ? '' : `: ${stderr.trim()}`}`);
  }
}
