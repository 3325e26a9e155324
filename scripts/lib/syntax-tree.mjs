// Walks a syntax tree of oxc-parser.
import { visitorKeys } from 'oxc-parser';

/**
 * Calls `visit(node, parents)` for every node. The last of `parents` is the nearest. If `visit` returns false, the nodes below are
 * skipped.
 */
export function walkTree(node, visit, parents = []) {
  if (visit(node, parents) === false) return;
  parents.push(node);
  for (const key of visitorKeys[node.type] ?? []) {
    const child = node[key];
    if (Array.isArray(child)) {
      for (const one of child) if (one) walkTree(one, visit, parents);
    } else if (child) walkTree(child, visit, parents);
  }
  parents.pop();
}
