
import json, subprocess, sys
def no(word): raise ValueError(word + ' is no JSON')
done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE)
value = json.loads(done.stdout.decode('utf-8'), parse_constant=no)
assert done.returncode == 0, done.returncode
assert eval(sys.argv[1]), value
