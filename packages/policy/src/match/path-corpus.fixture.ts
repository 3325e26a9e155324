// Spellings of /admin and of similar paths, with the verdict required from rules. path-corpus.json has the same data for programs in
// other languages; a test keeps the two equal.

export interface Spelling {
  /** Request target as in the request line; `{host}` stands for the tunnel's host. */
  readonly target: string;
  /** Path as seen by rules; null if the request is invalid. */
  readonly path: string | null;
  /**
   * Required verdict. `hide`: a restricting rule on `/admin/**` matches the path, and an `allow` rule on `/public/**` does not. `pass`:
   * neither rule matches. `allow`: only the `allow` rule matches. `refuse`: the target is not valid HTTP, and the edge answers 400.
   */
  readonly must: 'hide' | 'pass' | 'allow' | 'refuse';
  readonly kind: string;
}

const HIDDEN: Readonly<Record<string, readonly string[]>> = {
  plain: [
    '/admin',
    '/admin/',
    '/admin/users',
    '/admin?x=1',
    '/admin/?x',
    '/admin?/../public/a',
    '/admin/users?next=/public/a',
  ],
  dots: [
    ...['/./admin', '/admin/.', '/admin/./users', '/x/../admin', '/../admin', '/../../admin', '/x/y/../../admin'],
    ...['/admin/x/..', '/public/../admin', '/public/./../admin', '/public/a/../../admin/users', '/x/../admin?y'],
    ...['/./././admin', '/x/./../admin', '/x/y/z/../../../admin', '/admin/../admin', '/..//../admin?x'],
    // A service that compares paths before resolving dots treats the paths below as part of /admin.
    ...['/admin/..', '/admin/../public/a', '/admin/x/../../public/a'],
  ],
  empty: [
    ...['//admin', '///admin', '/.//admin', '//admin//', '/admin//users', '//x/..//admin', '/x//../..//admin'],
    // Empty segments that remain while dots are resolved, and a host in front, for services that resolve the target against a base URL.
    ...['/public//..//admin', '//x:80/admin', '//x@y/admin', '//127.0.0.1/admin/users', '//x/admin?y', '/\\\\x/admin'],
    ...['/%2fx/admin', '/%5cx/admin', '/%2F%2Fx/admin/users', '/%2f%5cx/admin', '/%0a/x/admin', '/%u002fx/admin'],
    // A host that ends at a different place depending on whether the service decodes first, and on whether a backslash ends a host.
    ...[
      '//public%2fx/admin%2f',
      '//public%2fx/admin',
      '//public\\x/admin',
      '/%0a/public%2fx/admin',
      '//x%3fy/admin%00',
    ],
    ...['/admin//../users', '//x/admin', '//x/admin/users', '///x/admin', '//public/admin', '//public/../admin'],
  ],
  encoded: [
    ...['/%61dmin', '/%61%64%6d%69%6e', '/%61%64%6D%69%6E/users', '/adm%69n', '/admi%6E?x', '/%2e/admin'],
    ...[
      '/x/%2e%2e/admin',
      '/x/%2E%2E/admin',
      '/x/.%2e/admin',
      '/x/%2e./admin',
      '/%2e%2e/admin',
      '/public/%2e%2e/admin',
    ],
    ...['/admin/%2e', '/y/../admin/%2e%2e/x', '/public/%2e%2e/%61dmin/users'],
    ...['/%61%64%6d%69%6e%2f', '/%41%44%4D%49%4E', '/x/%2e/%2e%2e/admin', '/%2e%2e/%2e%2e/admin', '/public/%2e./admin'],
    // Control characters removed by URL parsers, including parsers that decode first.
    ...['/ad%0amin', '/ad%0D%0Amin/users', '/%09admin', '/.%0a./admin', '/public/.%0d./admin', '/public/%0A../admin'],
  ],
  separators: [
    ...[
      '/admin%2f',
      '/admin%2Fusers',
      '/%2fadmin',
      '/%2Fadmin%2F',
      '/x%2f..%2fadmin',
      '/x/..%2fadmin',
      '/x/%2e%2e%2fadmin',
    ],
    ...['/public%2f..%2fadmin', '/public/..%2fadmin', '/public/..%2Fadmin/users', '/public/%2e%2e%2Fadmin'],
    ...[
      '/\\admin',
      '/x\\..\\admin',
      '/admin\\users',
      '/admin\\',
      '/x/..\\admin',
      '/public\\..\\admin',
      '/public/..\\admin',
    ],
    ...['/%5cadmin', '/x%5c..%5cadmin', '/admin%5Cusers', '/public%5C..%5Cadmin', '/public/..%5cadmin', '/\\x/admin'],
  ],
  semicolons: [
    ...[
      '/admin;',
      '/admin;x=1',
      '/admin;x/users',
      '/admin/;x',
      '/;/admin',
      '/;x=1/admin',
      '/x/..;/admin',
      '/x/..;a=b/admin',
    ],
    ...[
      '/public/..;/admin',
      '/public/;/../admin',
      '/public/..;x/admin/users',
      '/x/%2e%2e;/admin',
      '/public/%2e%2e;x/admin',
    ],
    ...[
      '/..;/admin',
      '/..;x=1/..;y/admin',
      '/admin;jsessionid=1234',
      '/admin;jsessionid=1234/users;a=b',
      '/;jsessionid=1/admin',
    ],
    ...['/admin/;/users', '/.;/admin', '/%2e;x/admin', '/public;/../admin'],
    ...['/admin%3b', '/admin%3Bx/users', '/x/..%3b/admin', '/public/..%3Bx/admin'],
  ],
  case: [
    ...[
      '/ADMIN',
      '/Admin',
      '/Admin/Users',
      '/aDmIn?x',
      '/%41DMIN',
      '/%41dmin/users',
      '/ADMIN;x',
      '/x/../ADMIN',
      '/ADMIN%2fusers',
    ],
    ...['/public/../ADMIN', '/PUBLIC/..;/Admin', '/\\ADMIN'],
    // Letters treated as ASCII by regular expressions of Python and Ruby, and forms that a service may normalize.
    ...['/adm%C4%B1n', '/ADM%C4%B0N/users', '/x/../adm%c4%b1n', '/adm%u0131n'],
    ...[
      '/%EF%BD%81dmin',
      '/%EF%BC%A1%EF%BC%A4%EF%BC%AD%EF%BC%A9%EF%BC%AE',
      '/%uff41dmin',
      '/%E2%93%90dmin',
      '/ad%E2%80%8Cmin',
      '/admin%EF%BB%BF/users',
    ],
  ],
  // Names as read by Windows and IIS, names for regular expressions that stop before a line break, and names for services that decode
  // before cutting off the query.
  names: [
    ...['/admin.', '/admin./users', '/admin..', '/admin%20', '/admin%20/users', '/admin.%20.', '/x/..%20/admin'],
    ...['/admin::$INDEX_ALLOCATION/users', '/admin::$DATA', '/admin:$I30:$INDEX_ALLOCATION', '/admin%3a:$data'],
    ...['/admin%0a', '/admin%0D%0A', '/admin%09', '/admin%00', '/admin%00.png', '/admin%3fx.css', '/admin%23x.css'],
    ...['/%u0061dmin', '/%U0041dmin/users', '/x%u002f..%u002fadmin', '/x/%u002e%u002e/admin', '/admin%u005cusers'],
    ...[
      '/admin%20%20',
      '/admin.%20',
      '/admin%20.',
      '/admin::$data',
      '/admin:$DATA/users',
      '/admin%00/users',
      '/admin%00%2e%2e',
    ],
    ...[
      '/public/..%00/admin',
      '/public/..%09/admin',
      '/public/..%0d%0a/admin',
      '/public/..%u005cadmin',
      '/admin%3f/../../public',
    ],
    ...['/public/..%20/admin', '/public%3f/../../admin', '/public/..%u002fadmin', '/public/../admin.'],
  ],
  mixed: [
    // Paths with two oddities: a service that interprets the first and treats the second as text sees a path in /admin.
    ...['/admin\\..%2f..%2fx/../users', '/admin;a/..%3b/../users', '/admin%5c..%2f..%2fx/../users'],
    ...[
      '/public/x\\..\\..\\admin/..%2fpublic',
      '/x/..%2f..%5cadmin;y',
      '/public/..;%2f..\\admin%3b',
      '/x/..;/%2e%2e%2f%41dmin',
    ],
  ],
};

const ABSOLUTE = [
  'http://{host}/admin',
  'HTTP://{host}/ADMIN',
  'http://{host}//admin',
  'http://{host}/x/../admin?y',
  'https://{host}/admin;x',
  'http://{host}/public/..%2fadmin',
  'http://{host}/%61dmin',
  'https://{host}//x/admin',
  'http://{host}/admin?x=http://y/',
  'hTTp://{host}/./admin',
];

const PASSING: Readonly<Record<string, readonly string[]>> = {
  plain: ['/', '/x', '/administrator', '/admins/x', '/admin.html', '/adminx', '/x/admin', '/x/admin/users', '/-admin'],
  names: ['/x:admin', '/admin:search', '/admin%3Asearch', '/admin.x', '/.admin', '/%u006', '/x.', '/x%20'],
  query: [
    '/?x%23/admin',
    '/??/admin',
    '/x?%0d%0a/admin',
    '/?url=//x/admin',
    '/?/admin',
    '/x?p=/admin',
    '/x?/../admin',
    '/?x=%2fadmin',
    '/x?;/admin',
    '/publi?c/admin',
  ],
  // Double-encoded paths: the edge decodes once, never twice.
  encoded: [
    '/%2561dmin',
    '/x/%252e%252e/admin',
    '/x%252fadmin',
    '/%25%36%31dmin',
    '/%c0%ae%c0%ae/admin',
    '/admin%',
    '/%00admin',
    '/x/%c0%ae%c0%ae/admin',
    '/x%c0%af..%c0%afadmin',
    '/%e0%81%a1dmin',
    '/%f0%80%81%a1dmin',
    '/x/%25%32%65%25%32%65/admin',
    '/%252561dmin',
    '/admin%252f',
    '/%ef%bc%8fadmin',
    '/x/%ef%bc%8e%ef%bc%8e/admin',
    '/admin%c3%a9',
    '/a%cc%81dmin',
  ],
  // Encoded separators in URLs of GitLab, npm and Matrix, and in a Windows file name.
  separators: [
    ...['/api/v4/projects/group%2Fsub%2Fproject/repository', '/@scope%2fname', '/_matrix/client/v3/rooms/!a:b.c/x%2Fy'],
    ...['/open/C:%5CUsers%5Cme', '/x%2Fadmin'],
  ],
  case: ['/PUBLIC/a', '/Public', '/pUBLIC/x'],
  doubtful: ['/publi%63%2fa', '/public%5ca', '/public\\a', '//public/a', '/public;x/a', '/x/../public/a'],
};

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  plain: [
    '/public',
    '/public/',
    '/public/a',
    '/public/a?next=/admin',
    '/public/admin',
    '/public?/../admin',
    '/publi%63/a',
  ],
  dots: ['/public/./a', '/public/a/../b', '/public/.well-known/x', '/public/a/..b'],
  empty: ['/public//a', '/public///'],
  encoded: [
    '/public/a%0ab',
    '/public/stra%C3%9Fe',
    '/public/%EF%BC%A1',
    '/public/%E2%84%80',
    '/public/e%CC%81',
    '/public/a%20b',
    '/public/caf%C3%A9',
    '/public/100%25',
    '/public/%2561dmin',
  ],
  separators: ['/public/@scope%2fname', '/public/group%2Fproject/raw', '/public/a%5cb'],
  semicolons: ['/public/a;v=1', '/public/a;v=1/b', '/public/a%3Bb'],
  case: ['/public/ADMIN', '/public/A%2FB;c'],
  names: [
    '/public/Inc.',
    '/public/a%20',
    '/public/a%3Fb',
    '/public/%23x',
    '/public/a:b',
    '/public/$x',
    '/public/a.b/c',
  ],
};

/** Targets with `#`, which some services cut off and some keep, and targets without a leading `/`. */
const REFUSED = [
  ...[
    '/admin\t',
    '/adm\tin',
    '/admin\u00a0',
    '/\u00e1dmin',
    '/admin\u007f',
    '/admin\u0000',
    '/admin\u000b',
    '/admin\u000c',
  ],
  ...['http://user@{host}/admin', 'http://user:word@{host}/admin', 'http://{host}@x/admin', 'http://{host}\\admin'],
  ...[
    'http:///admin',
    'http:/admin',
    'http:admin',
    'ftp://{host}/admin',
    'ws://{host}/admin',
    '{host}',
    '*',
    '*/admin',
  ],
  ...['http://{host}#/admin', '/admin HTTP/1.1 x'],
  ...['/admin#x', '/x#/../admin', '#/admin', 'admin', '\\admin', '%2fadmin', '?/admin', '/ad min'],
];

const pathOf = (target: string): string => target.replace(/^\w+:\/\/\{host\}/, '');

const spellings = (must: Spelling['must'], table: Readonly<Record<string, readonly string[]>>): Spelling[] =>
  Object.entries(table).flatMap(([kind, targets]) =>
    targets.map((target) => ({ target, path: must === 'refuse' ? null : pathOf(target), must, kind })),
  );

export const PATH_CORPUS: readonly Spelling[] = [
  ...spellings('hide', { ...HIDDEN, absolute: ABSOLUTE }),
  ...spellings('pass', PASSING),
  ...spellings('allow', ALLOWED),
  ...spellings('refuse', { target: REFUSED }),
];
