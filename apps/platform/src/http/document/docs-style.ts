// The style of the page of the API.

export const DOCS_STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --link: light-dark(#0b57d0, #8ab4f8); }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
h3 a { color: inherit; }
nav { padding: 1rem; border-bottom: 1px solid var(--line); font-size: .9rem; }
nav ul { list-style: none; margin: .25rem 0 1rem; padding: 0; }
nav li { padding: .1rem 0; overflow-wrap: anywhere; }
nav b { display: inline-block; min-width: 4rem; font-size: .7rem; }
main { padding: 1rem; max-width: 60rem; min-width: 0; }
section { margin: 0 0 2rem; scroll-margin-top: 1rem; }
.operation { border-top: 1px solid var(--line); padding-top: .5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; display: block; overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; border-radius: .4rem; font-size: .85rem; line-height: 1.4; }
code { font-family: ui-monospace, monospace; }
small { opacity: .7; }
summary { cursor: pointer; padding: .2rem 0; }
.answer { margin: .2rem 0 .2rem 1.1rem; }
.get { color: light-dark(#0b6e4f, #6dd3a8); }
.post, .patch { color: light-dark(#7a4b00, #f2c062); }
.delete, .s4, .s5 { color: light-dark(#b3261e, #f2938c); }
.s2 { color: light-dark(#0b6e4f, #6dd3a8); }
@media (min-width: 62rem) {
  body { display: grid; grid-template-columns: 22rem minmax(0, 1fr); }
  nav { border: 0; border-right: 1px solid var(--line); position: sticky; top: 0; height: 100vh; overflow-y: auto; }
  main { padding: 1rem 2rem; }
}
`;
