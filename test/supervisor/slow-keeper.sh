#!/bin/sh
# The real keeper, held back: before it begins, or (with SLOW_TOOL) inside its call of stat, lock in hand.
if [ -n "${SLOW_TOOL:-}" ]; then
  mkdir -p "$SLOW_TOOL/bin"
  {
    echo '#!/bin/sh'
    echo "touch '$SLOW_TOOL/in-stat'; until [ -e '$GATE' ]; do sleep 0.02; done; exec /usr/bin/stat \"\$@\""
  } >"$SLOW_TOOL/bin/stat"
  chmod +x "$SLOW_TOOL/bin/stat"
  PATH=$SLOW_TOOL/bin:$PATH exec /bin/sh "$KEEPER" "$@"
fi
until [ -e "$GATE" ]; do sleep 0.02; done
/bin/sh "$KEEPER" "$@"
echo $? >"$GATE.ended"
