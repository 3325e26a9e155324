// JSON schemas of Kubernetes and of the Prometheus operator for kubeconform, made from Go modules: the usual place of the schemas is a host
// that many networks do not reach.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { CACHE_DIR } from '../../../../scripts/lib/paths.mjs';

const KUBERNETES = 'k8s.io/kubernetes@v1.36.3';
const OPERATOR = 'github.com/prometheus-operator/prometheus-operator@v0.85.0';
const CUSTOM_KINDS = ['servicemonitors', 'prometheusrules'];

/** Where kubeconform finds the schema of an object. */
export const SCHEMA_LOCATION = join(CACHE_DIR, 'helm/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json');

/** Makes the schemas in .cache, once. */
export function makeSchemas() {
  const folder = join(CACHE_DIR, 'helm/schemas');
  const complete = join(folder, 'complete');
  const madeOf = `${KUBERNETES} ${OPERATOR}\n`;
  if (existsSync(complete) && readFileSync(complete, 'utf8') === madeOf) return;
  mkdirSync(folder, { recursive: true });
  const write = (group, version, kind, schema) =>
    writeFileSync(
      join(folder, `${kind}-${[group.split('.')[0], version].filter(Boolean).join('-')}.json`.toLowerCase()),
      JSON.stringify(schema),
    );

  const specification = join(moduleFolder(KUBERNETES), 'api/openapi-spec/swagger.json');
  const { definitions } = JSON.parse(readFileSync(specification, 'utf8'));
  const all = Object.fromEntries(Object.entries(definitions).map(([name, schema]) => [name, closed(schema)]));
  for (const [name, schema] of Object.entries(definitions)) {
    for (const { group, version, kind } of schema['x-kubernetes-group-version-kind'] ?? []) {
      write(group, version, kind, { $ref: `#/definitions/${name}`, definitions: neededBy(name, all) });
    }
  }

  const examples = join(moduleFolder(OPERATOR), 'example/prometheus-operator-crd');
  for (const file of readdirSync(examples).filter((name) => CUSTOM_KINDS.some((kind) => name.includes(`_${kind}.`)))) {
    const { spec } = parse(readFileSync(join(examples, file), 'utf8'));
    for (const { name, schema } of spec.versions)
      write(spec.group, name, spec.names.kind, closed(schema.openAPIV3Schema));
  }
  writeFileSync(complete, madeOf);
}

/** The folder of a Go module, downloaded into Go's cache. */
function moduleFolder(module) {
  const { status, stdout, stderr } = spawnSync('go', ['mod', 'download', '-json', module], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`go mod download ${module}: ${stderr.trim() || stdout.trim()}`);
  return JSON.parse(stdout).Dir;
}

/** A schema that refuses unknown properties, accepts numbers where Kubernetes does, and refuses null. */
function closed(schema) {
  if (Array.isArray(schema)) return schema.map(closed);
  if (schema === null || typeof schema !== 'object') return schema;
  if (schema['x-kubernetes-int-or-string'] === true || schema.format === 'int-or-string')
    return { type: ['integer', 'string'] };
  const inner = Object.fromEntries(
    Object.entries(schema)
      .filter(
        ([key]) => !['description', 'format', 'default', 'example'].includes(key) || typeof schema[key] === 'object',
      )
      .map(([key, value]) => [key, key === 'properties' ? mapValues(value, closed) : closed(value)]),
  );
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true || schema.additionalProperties !== undefined;
  return schema.properties === undefined || isOpen ? inner : { ...inner, additionalProperties: false };
}

const mapValues = (object, map) => Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]));

/** The definitions that a definition refers to, directly or indirectly. */
function neededBy(name, all, found = {}) {
  if (name in found || all[name] === undefined) return found;
  found[name] = all[name];
  const references = JSON.stringify(all[name]).matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g);
  for (const [, other] of references) neededBy(other, all, found);
  return found;
}
